/* A resolver to preload: the address of NAME is the line in the file NAME in the directory
   $ZKLOCK_TEST_NAMES. If the file is a FIFO, the answer waits until the FIFO is written to; an
   empty line is a temporary failure. Other names are passed to the real resolver. A numeric address
   fails with AI_ADDRCONFIG, for which the real resolver would list all addresses of the host. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*Resolve)(const char*, const char*, const struct addrinfo*, struct addrinfo**);

int getaddrinfo(const char* node, const char* service, const struct addrinfo* hints,
                struct addrinfo** found) {
  Resolve real = (Resolve)dlsym(RTLD_NEXT, "getaddrinfo");
  const char* directory = getenv("ZKLOCK_TEST_NAMES");
  unsigned char numeric[sizeof(struct in6_addr)];
  if (hints != NULL && (hints->ai_flags & AI_ADDRCONFIG) != 0 && node != NULL &&
      (inet_pton(AF_INET, node, numeric) == 1 || inet_pton(AF_INET6, node, numeric) == 1)) {
    return EAI_FAIL;
  }
  if (directory != NULL && node != NULL &&
      (hints == NULL || (hints->ai_flags & AI_NUMERICHOST) == 0)) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, node);
    FILE* file = fopen(path, "re");
    if (file != NULL) {
      char address[100] = "";
      char* line = fgets(address, sizeof address, file);
      fclose(file);
      address[strcspn(address, "\n")] = '\0';
      if (line == NULL || address[0] == '\0') return EAI_AGAIN;
      return real(address, service, hints, found);
    }
  }
  return real(node, service, hints, found);
}
