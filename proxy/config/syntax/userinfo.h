/* What is said of a URL's user and password wherever one is read. Nothing of them is ever quoted.
 */
#ifndef NESTGUARD_USERINFO_H
#define NESTGUARD_USERINFO_H

#define USERINFO_RULE                                                                              \
    "in user and password @ is written %40, / %2F, ? %3F, # %23 and % %25, as se%40cret for "      \
    "se@cret"

#endif
