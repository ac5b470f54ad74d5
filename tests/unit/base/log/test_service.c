#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int manager;
static char directory[] = "/tmp/nestguard-service-XXXXXX", path[64];

static int open_manager(void **state)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/notify", directory);
    strcpy(at.sun_path, path);
    manager = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(manager, (struct sockaddr *)&at, sizeof at), 0);
    setenv("NOTIFY_SOCKET", path, 1);
    setenv("WATCHDOG_USEC", "1000000", 1); /* so every half second */
    return 0;
}

static int close_manager(void **state)
{
    (void)state;
    close(manager);
    unlink(path);
    return rmdir(directory);
}

/* "" when nothing was told. */
static const char *heard(void)
{
    static char text[256];
    ssize_t length = recv(manager, text, sizeof text - 1, MSG_DONTWAIT);
    text[length < 0 ? 0 : length] = '\0';
    return text;
}

static void the_watchdog_hears_of_new_turns_only(void **state)
{
    (void)state;
    service_alive(10000);
    assert_string_equal(heard(), "WATCHDOG=1");
    service_alive(10100);
    service_alive(10499);
    assert_string_equal(heard(), "");
    service_alive(10500);
    assert_string_equal(heard(), "WATCHDOG=1");
    for (int i = 0; i < 100; i++)
        service_alive(10500); /* a thread hangs */
    assert_string_equal(heard(), "");
}

static void states_are_told(void **state)
{
    (void)state;
    service_ready();
    assert_non_null(strstr(heard(), "READY=1"));
    service_reloading();
    assert_non_null(strstr(heard(), "RELOADING=1\nMONOTONIC_USEC="));
    service_stopping();
    assert_non_null(strstr(heard(), "STOPPING=1\nWATCHDOG_USEC=0"));
}

static void after_handing_over_nothing_is_said_any_more(void **state)
{
    (void)state;
    service_hand_over(1234);
    assert_string_equal(heard(), "MAINPID=1234");
    service_reloading();
    service_ready();
    service_alive(100000);
    service_stopping();
    assert_string_equal(heard(), "");
}

static void without_a_manager_nothing_happens(void **state)
{
    (void)state;
    unsetenv("NOTIFY_SOCKET");
    service_ready();
    service_alive(20000);
    assert_string_equal(heard(), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_watchdog_hears_of_new_turns_only),
        cmocka_unit_test(states_are_told),
        cmocka_unit_test(after_handing_over_nothing_is_said_any_more),
        cmocka_unit_test(without_a_manager_nothing_happens),
    };
    return cmocka_run_group_tests(tests, open_manager, close_manager);
}
