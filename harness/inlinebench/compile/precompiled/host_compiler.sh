#!/bin/sh
# nvcc's host compiler: gcc, with a precompiled header for the start of the file that cudafe++ writes.
#
# For each optimization level, cudafe++ always makes the same text of torch's headers. This text is prefix.h, in folders
# next to this script, together with GCC's precompiled form. If a file starts with one of these texts, byte for byte,
# its rest is compiled with `-include prefix.h`. Other files are compiled unchanged, and so is a file whose compilation
# with the precompiled header fails or prints anything: GCC does not precompile which warnings the text disables.
#
# With INLINEBENCH_MAKE_PREFIX the file contains only these headers. The script then makes prefix.h from it, in a folder
# of that name.

source=
for word; do
  case $word in *.cudafe1.cpp) source=$word ;; esac
done
[ -n "$source" ] || exec gcc "$@"

here=$(dirname "$0")
if [ -n "$INLINEBENCH_MAKE_PREFIX" ]; then
  prefix=$here/$INLINEBENCH_MAKE_PREFIX/prefix.h
else
  prefix=
  for each in "$here"/*/prefix.h; do
    size=$(wc -c < "$each")
    cmp -s -n "$size" "$each" "$source" && prefix=$each && break
  done
  [ -n "$prefix" ] || exec gcc "$@"
fi

output=
before=
architectures=
for word; do  # all but the file, the output and the macros that name GPUs, which are defined later: GCC uses a
  shift       # precompiled header only with the same macros
  case $word in
    -D__CUDA_ARCH_*) architectures="$architectures $word" ;;
    -o|"$source") ;;
    *) if [ "$before" = -o ]; then output=$word; else set -- "$@" "$word"; fi ;;
  esac
  before=$word
done

if [ -n "$INLINEBENCH_MAKE_PREFIX" ]; then
  # The headers end where the source begins, at the line that names the source for messages.
  mkdir -p "$(dirname "$prefix")" && sed '/^# [0-9]* "cuda_sources"$/,$d' "$source" > "$prefix" || exit
  gcc "$@" -x c++-header "$prefix" -o "$prefix.gch" && exec touch "$output"
  exit
fi

rest=${source%.cudafe1.cpp}.rest.cpp
{
  for word in $architectures; do
    case $word in *=*) ;; *) word=$word=1 ;; esac
    word=${word#-D}
    echo "#define ${word%%=*} ${word#*=}"
  done
  tail -c +$((size + 1)) "$source"
} > "$rest" &&
  gcc "$@" -include "$prefix" "$rest" -o "$output" > "$rest.log" 2>&1 && [ ! -s "$rest.log" ] && exit
exec gcc "$@" $architectures "$source" -o "$output"
