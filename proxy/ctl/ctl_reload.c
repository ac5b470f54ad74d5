/* The answer as control/configuration.h describes it: first what is wrong with the file, for that
 * may be all that there is; then each setting that is another now, or will be after a restart.
 */
#include "ctl/ctl_reload.h"

#include "base/memory.h"

static const char *text(const json_t *of, const char *name)
{
    const char *found = json_string_value(json_object_get(of, name));
    return found ? found : "";
}

static void print_problem(const json_t *problem, FILE *out)
{
    const char *remedy = text(problem, "remedy");
    fprintf(out, "%s: %s: %s\n", text(problem, "place"), text(problem, "level"),
            text(problem, "text"));
    if (*remedy)
        fprintf(out, "    %s\n", remedy);
}

/* A keyspace that came or went has no value before, or none after. */
static void print_change(const json_t *change, FILE *out)
{
    const char *what = text(change, "what");
    const char *before = text(change, "before"), *after = text(change, "after");
    if (*text(change, "why"))
        fprintf(out, "%s: NOT TAKEN, it is still %s: %s\n", what, before, text(change, "why"));
    else if (!json_is_true(json_object_get(change, "taken")))
        fprintf(out, "%s: NEEDS A RESTART for %s; it is %s\n", what, after, before);
    else if (!*before)
        fprintf(out, "%s: added, %s\n", what, after);
    else if (!*after)
        fprintf(out, "%s: removed, it was %s\n", what, before);
    else
        fprintf(out, "%s: %s, it was %s\n", what, after, before);
}

/* A process that takes over has the file as it is now. */
static void print_way(const json_t *changes, FILE *out)
{
    bool restart = false;
    size_t i;
    const json_t *change;
    json_array_foreach(changes, i, change) restart |=
        !*text(change, "why") && !json_is_true(json_object_get(change, "taken"));
    if (restart)
        fputs("what needs a restart is taken without a gap by a handover: kill -USR2\n", out);
}

static void print_left(const json_t *left, FILE *out)
{
    size_t i;
    const json_t *name;
    if (json_array_size(left))
        fputs("keyspaces left as they are:", out);
    json_array_foreach(left, i, name) fprintf(out, "%s %s", i ? "," : "", json_string_value(name));
    if (json_array_size(left))
        fputc('\n', out);
}

void ctl_reload_print(const json_t *body, const char *option, const struct ctl_paper *paper)
{
    FILE *out = paper->out;
    size_t i;
    const json_t *item, *changes = json_object_get(body, "changes");
    (void)option;
    json_array_foreach(json_object_get(body, "problems"), i, item) print_problem(item, out);
    if (json_object_get(body, "error"))
        return;
    json_array_foreach(changes, i, item) print_change(item, out);
    if (!json_array_size(changes))
        fputs("nothing has changed\n", out);
    print_way(changes, out);
    print_left(json_object_get(json_object_get(body, "keyspaces"), "left"), out);
}

/* Only what is not taken, and not for want of a restart, has a reason. */
char *ctl_reload_shortfall(const json_t *body)
{
    size_t i;
    const json_t *change;
    json_array_foreach(json_object_get(body, "changes"), i, change)
    {
        if (*text(change, "why"))
            return xasprintf("%s was not taken: %s", text(change, "what"), text(change, "why"));
    }
    return NULL;
}
