/* nestguard-ctl, which `nestguard ctl` becomes. */
#include "ctl/ctl.h"

int main(int argc, char **argv)
{
    return ctl_main(argc, argv);
}
