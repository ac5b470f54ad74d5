#include "check/check_json.h"

#include "check/check_sql.h"
#include "http/json_bytes.h"

/* "" is told as null, too: a program has one thing to ask for, not two. */
static json_t *text_json(const char *text)
{
    return json_text(text && *text ? text : NULL);
}

static json_t *finding_json(const struct problem *problem)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "level", problem_level_name(problem->level),
                     "place", text_json(problem->place), "text", text_json(problem->text), "sql",
                     text_json(check_is_sql(problem) ? problem->remedy : NULL), "remedy",
                     text_json(problem->remedy));
}

json_t *check_json(const struct problems *problems, const char *cache, const char *database)
{
    json_t *findings = json_array();
    for (size_t i = 0; i < problems->count; i++)
        json_array_append_new(findings, finding_json(&problems->at[i]));
    return json_pack("{s:b, s:I, s:I, s:I, s:o, s:o, s:o}", "ok", problems->errors == 0, "errors",
                     (json_int_t)problems->errors, "warnings",
                     (json_int_t)(problems->count - problems->errors - problems->notes), "notes",
                     (json_int_t)problems->notes, "cache", text_json(cache), "database",
                     text_json(database), "findings", findings);
}
