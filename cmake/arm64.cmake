# Cross-building for arm64 with Debian's crossbuild-essential-arm64 and the libraries' packages for arm64. The
# programs that are built run under qemu-user.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(ZKLOCK_DEBIAN_ARCHITECTURE arm64)
