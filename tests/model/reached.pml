// REACHED(name): counts how often a run of pan gets there, outside the state; pan prints "reached
// name count" when it ends.

c_decl {
  \#include <stdio.h>
  \#include <stdlib.h>
  \#include <string.h>
  static struct { const char *name; unsigned long times; } probe[64];
  static void PrintProbes(void) {
    int i;
    for (i = 0; probe[i].name; i++) printf("reached %s %lu\n", probe[i].name, probe[i].times);
  }
  static unsigned long *Probe(const char *name) {
    int i = 0;
    if (!probe[0].name) atexit(PrintProbes);
    while (probe[i].name && strcmp(probe[i].name, name)) i++;
    probe[i].name = name;
    return &probe[i].times;
  }
}
#define REACHED(name) \
  c_code { { static unsigned long *times; if (!times) times = Probe(#name); ++*times; } }
#define REACHED_IF(condition, name) if :: condition -> REACHED(name) :: else fi
