/* nestguard-ctl, which `nestguard ctl` becomes. */
#include "base/standard_files.h"
#include "ctl/ctl.h"

int main(int argc, char **argv)
{
    standard_files_open();
    return standard_files_end("nestguard ctl", ctl_main(argc, argv));
}
