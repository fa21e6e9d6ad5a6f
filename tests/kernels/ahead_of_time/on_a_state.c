/* Calls a kernel of a library with a state that comes on standard input, and writes the state back, with what the
 * kernel returned before it: for machines that are here as an emulator only.
 *
 *   on_a_state LIBRARY SYMBOL BUDGET
 *
 * The state: whole numbers of 64 bits, which are the record's size, how many arrays there are, and of each where its
 * address lies in the record and its size; then the record and the arrays. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *got(size_t size) {
    void *made = malloc(size ? size : 1);
    if (!made || fread(made, 1, size, stdin) != size) {
        fputs("the state ends too early\n", stderr);
        exit(2);
    }
    return made;
}

int main(int count, char **words) {
    void *library = count == 4 ? dlopen(words[1], RTLD_NOW) : NULL;
    int32_t (*kernel)(int64_t, int64_t, int64_t) = library ? dlsym(library, words[2]) : NULL;
    if (!kernel) {
        fprintf(stderr, "%s\n", count == 4 ? dlerror() : "usage: on_a_state LIBRARY SYMBOL BUDGET");
        return 2;
    }
    int64_t *sizes = got(2 * sizeof(int64_t)), *places = got(2 * sizes[1] * sizeof(int64_t)), result[1];
    char *record = got(sizes[0]), *before = malloc(sizes[0]), **arrays = malloc(sizes[1] * sizeof(int64_t));
    memcpy(before, record, sizes[0]);
    for (int64_t one = 0; one < sizes[1]; one++) {
        arrays[one] = got(places[2 * one + 1]);
        memcpy(record + places[2 * one], &arrays[one], sizeof(int64_t));
    }
    int32_t status = kernel((int64_t)record, atoll(words[3]), (int64_t)result);
    if (status) {
        fprintf(stderr, "status %d\n", status);
        return 1;
    }
    for (int64_t one = 0; one < sizes[1]; one++) /* addresses as they came, which say something to who sent them */
        memcpy(record + places[2 * one], before + places[2 * one], sizeof(int64_t));
    fwrite(result, sizeof(int64_t), 1, stdout);
    fwrite(record, 1, sizes[0], stdout);
    for (int64_t one = 0; one < sizes[1]; one++)
        fwrite(arrays[one], 1, places[2 * one + 1], stdout);
    return fflush(stdout) ? 1 : 0;
}
