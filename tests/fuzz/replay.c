/* In the place of libFuzzer: what a fuzzer found, or was begun with, runs in every build.
 *
 *   replay_NAME FILE-OR-FOLDER...
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static unsigned inputs;

static void replay_file(FILE *file, const char *path)
{
    enum { MOST = 1 << 20 };
    uint8_t *bytes = malloc(MOST);
    if (!bytes)
        abort();
    size_t size = fread(bytes, 1, MOST, file);
    fprintf(stderr, "%s\n", path); /* the last that is printed is the one that failed */
    LLVMFuzzerTestOneInput(bytes, size);
    inputs++;
    free(bytes);
}

static void replay(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    if (!folder) {
        FILE *file = fopen(path, "rb");
        if (!file) {
            perror(path);
            exit(1);
        }
        replay_file(file, path);
        fclose(file);
        return;
    }
    while ((entry = readdir(folder))) {
        char *inside = NULL;
        if (entry->d_name[0] == '.')
            continue;
        if (asprintf(&inside, "%s/%s", path, entry->d_name) < 0)
            abort();
        replay(inside);
        free(inside);
    }
    closedir(folder);
}

int main(int count, char **paths)
{
    for (int i = 1; i < count; i++)
        replay(paths[i]);
    printf("%u inputs\n", inputs);
    return inputs ? 0 : 1;
}
