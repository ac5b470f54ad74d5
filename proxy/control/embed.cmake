# Makes a C file of another file's bytes: cmake -D FROM=page.html -D TO=page_html.c -D NAME=page_html -P
# embed.cmake. A string, with its zero at the end.
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${TO} "extern const unsigned char ${NAME}[];\nconst unsigned char ${NAME}[] = {\n    ${bytes}0};\n")
