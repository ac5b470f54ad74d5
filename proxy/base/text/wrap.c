/* Greedy: each word goes on the line where there is room for it, a longer one than any line has on
 * one of its own. Widths are counted in bytes.
 */
#include "base/text/wrap.h"

#include <string.h>

enum { COLUMNS = 80 };

void print_wrapped(const char *text, int indent, FILE *out)
{
    int column = indent;
    fprintf(out, "%*s", indent, "");
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (column > indent && column + 1 + word > COLUMNS) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        column += fprintf(out, "%s%.*s", column > indent ? " " : "", word, text);
        text += word + (text[word] == ' ');
    }
    fputc('\n', out);
}
