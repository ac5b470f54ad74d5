/* What control groups say, in a tree that looks like the system's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "config/memory_limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVICE "/system.slice/nestguard.service"

static char root[] = "/tmp/nestguard-memory-XXXXXX";

static void run(const char *what)
{
    char command[300];
    snprintf(command, sizeof command, "cd %s && %s", root, what);
    assert_int_equal(system(command), 0);
}

static void put(const char *path, const char *text)
{
    char name[200];
    snprintf(name, sizeof name, "%s/%s", root, path);
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_tree(void **state)
{
    (void)state;
    strcpy(strrchr(root, '-'), "-XXXXXX");
    assert_non_null(mkdtemp(root));
    run("mkdir -p proc/self sys/fs/cgroup" SERVICE);
    put("proc/self/cgroup", "0::" SERVICE "\n");
    return 0;
}

static int remove_tree(void **state)
{
    (void)state;
    run("rm -r proc sys");
    return rmdir(root);
}

static void a_service_is_bound_by_its_own_group(void **state)
{
    (void)state;
    put("sys/fs/cgroup/system.slice/memory.max", "max\n");
    put("sys/fs/cgroup" SERVICE "/memory.max", "536870912\n");
    assert_int_equal(memory_limit_of_group(root), 512 << 20);
}

static void a_group_around_it_may_allow_less(void **state)
{
    (void)state;
    put("sys/fs/cgroup/system.slice/memory.max", "1000\n");
    put("sys/fs/cgroup" SERVICE "/memory.max", "2000\n");
    assert_int_equal(memory_limit_of_group(root), 1000);
}

static void a_container_is_bound_by_the_outermost(void **state)
{
    (void)state;
    put("sys/fs/cgroup/memory.max", "3000\n");
    put("proc/self/cgroup", "0::/\n");
    assert_int_equal(memory_limit_of_group(root), 3000);
    put("proc/self/cgroup", "0::/docker/of-the-host\n");
    assert_int_equal(memory_limit_of_group(root), 3000);
}

static void other_versions_say_nothing(void **state)
{
    (void)state;
    put("proc/self/cgroup", "4:memory:" SERVICE "\n1:name=systemd:/\n");
    put("sys/fs/cgroup" SERVICE "/memory.max", "4000\n");
    assert_true(memory_limit_of_group(root) == UINT64_MAX);
    put("proc/self/cgroup", "4:memory:/other\n0::" SERVICE "\n");
    assert_int_equal(memory_limit_of_group(root), 4000);
}

static void where_nothing_is_said_the_machine_is_the_bound(void **state)
{
    (void)state;
    assert_true(memory_limit_of_group(root) == UINT64_MAX);
    run("rm proc/self/cgroup");
    assert_true(memory_limit_of_group(root) == UINT64_MAX);
    assert_true(memory_limit() > 0 && memory_limit() < UINT64_MAX);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_service_is_bound_by_its_own_group, make_tree,
                                        remove_tree),
        cmocka_unit_test_setup_teardown(a_group_around_it_may_allow_less, make_tree, remove_tree),
        cmocka_unit_test_setup_teardown(a_container_is_bound_by_the_outermost, make_tree,
                                        remove_tree),
        cmocka_unit_test_setup_teardown(other_versions_say_nothing, make_tree, remove_tree),
        cmocka_unit_test_setup_teardown(where_nothing_is_said_the_machine_is_the_bound, make_tree,
                                        remove_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
