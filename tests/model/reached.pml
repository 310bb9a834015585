// REACHED(name): counts how often a run of pan comes by, without being part of the state; pan
// prints "reached name count" at its end.

c_decl {
  \#include <stdio.h>
  \#include <stdlib.h>
  \#include <string.h>
  static struct { const char *name; unsigned long times; } probe[64];
  static void TellProbes(void) {
    int i;
    for (i = 0; probe[i].name; i++) printf("reached %s %lu\n", probe[i].name, probe[i].times);
  }
  static unsigned long *Probe(const char *name) {
    int i = 0;
    if (!probe[0].name) atexit(TellProbes);
    while (probe[i].name && strcmp(probe[i].name, name)) i++;
    probe[i].name = name;
    return &probe[i].times;
  }
}
#define REACHED(name) \
  c_code { { static unsigned long *times; if (!times) times = Probe(#name); ++*times; } }
#define REACHED_IF(condition, name) if :: condition -> REACHED(name) :: else fi
