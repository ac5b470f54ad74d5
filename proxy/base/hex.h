/* Hexadecimal digits: "0" to "9", "a" to "f" in either case, whatever the locale says. */
#ifndef NESTGUARD_HEX_H
#define NESTGUARD_HEX_H

/* What the digit stands for, 0 to 15; -1 when it is none. */
static inline int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    char lower = (char)(digit | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* What the two digits at `at` stand for together, 0 to 255; -1 when one is none. The second is only
 * looked at behind a first. */
static inline int hex_byte(const char *at)
{
    int high = hex_value(at[0]);
    int low = high < 0 ? -1 : hex_value(at[1]);
    return low < 0 ? -1 : high << 4 | low;
}

/* The digit for the low four bits. */
static inline char hex_digit_lower(unsigned value)
{
    return "0123456789abcdef"[value & 15];
}

static inline char hex_digit_upper(unsigned value)
{
    return "0123456789ABCDEF"[value & 15];
}

#endif
