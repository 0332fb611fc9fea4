#!/bin/sh
# nvcc's host compiler: gcc, with the start of the file that cudafe++ writes in precompiled form.
#
# cudafe++ makes the same text of torch's headers each time, for one level of optimisation. The text is prefix.h, in
# folders beside this script, with GCC's precompiled form. If a file starts with one of these texts, byte for byte, the
# rest of it is compiled with `-include prefix.h`. Every other file is compiled as it is, and so is one where that fails
# or prints anything: GCC does not keep in precompiled form which warnings the text switches off.
#
# With INLINEBENCH_MAKE_PREFIX the file has nothing but these headers. The script then makes prefix.h of it, in a folder
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
for word; do  # all but the file, the output, and the macros that name GPUs: GCC uses a precompiled header only with
  shift       # the same macros, and these are defined after it
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
  gcc "$@" -include "$prefix" "$rest" -o "$output" > "$rest.log" 2>&1 && [ ! -s "$rest.log" ] && exit
exec gcc "$@" $architectures "$source" -o "$output"
