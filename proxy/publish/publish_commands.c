/* Words are pointers: texts are the caller's until the command is sent, which copies them; numbers
 * are printed into the command itself, which therefore is not to be moved once it has some.
 */
#include "publish/publish_commands.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void publish_bytes(struct publish_command *command, const void *at, size_t length)
{
    assert(command->count < PUBLISH_WORDS_MAX);
    command->words[command->count++] = (struct redis_bytes){at, length};
}

void publish_word(struct publish_command *command, const char *text)
{
    publish_bytes(command, text, strlen(text));
}

void publish_number(struct publish_command *command, uint64_t number)
{
    assert(command->number_count < PUBLISH_NUMBERS_MAX);
    char *room = command->numbers[command->number_count++];
    snprintf(room, sizeof command->numbers[0], "%" PRIu64, number);
    publish_word(command, room);
}

void publish_set_bits(struct publish_command *command, const char *key, const uint64_t *places,
                      unsigned count)
{
    publish_word(command, "BITFIELD");
    publish_word(command, key);
    for (unsigned i = 0; i < count; i++) {
        publish_word(command, "SET");
        publish_word(command, "u1");
        publish_number(command, places[i]);
        publish_word(command, "1");
    }
}

void publish_script(struct publish_command *command, const char *script, size_t keys,
                    const struct publish_names *names)
{
    publish_word(command, "EVAL");
    publish_word(command, script);
    publish_number(command, keys);
    publish_word(command, names->lease);
    publish_word(command, names->info);
}

bool publish_hear(const struct redis_answer *answer, struct publish_said *said)
{
    char *end;
    if (answer->outcome != REDIS_DONE || !answer->text.at)
        return false;
    said->time = strtoull(answer->text.at, &end, 10);
    said->word = end + 1;
    return *end == ' ' && said->time;
}
