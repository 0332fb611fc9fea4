#!/bin/sh
# nvcc's host compiler: gcc, for which the begin of the file that cudafe++ writes is precompiled.
#
# What cudafe++ makes of the headers that every kernel's source begins with is the same text each time, for one level of
# optimisation. It lies in folders beside this script as prefix.h, with GCC's precompiled form. A file that begins with
# one of these texts is compiled without it, with `-include prefix.h`. Any other, and one in which that fails, is
# compiled as it is.
#
# With INLINEBENCH_MAKE_PREFIX the file has nothing but these headers, and prefix.h is made of it in a folder of that
# name.

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
for word; do  # all but the file, what is to be made of it, and the GPUs that it is for: GCC takes a precompiled header
  shift       # only with the same macros, and these are needed behind it
  case $word in
    -D__CUDA_ARCH_*) architectures="$architectures $word" ;;
    -o|"$source") ;;
    *) if [ "$before" = -o ]; then output=$word; else set -- "$@" "$word"; fi ;;
  esac
  before=$word
done

if [ -n "$INLINEBENCH_MAKE_PREFIX" ]; then
  # The headers end where the source begins, under the name that its lines have in messages.
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
  gcc "$@" -include "$prefix" "$rest" -o "$output" 2> "$rest.log" && cat "$rest.log" >&2 && exit
exec gcc "$@" $architectures "$source" -o "$output"
