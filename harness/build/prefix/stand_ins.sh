#!/bin/sh
# Makes what a linker can take instead of torch's libraries, in a folder beside this script.
#
#     stand_ins.sh CXX FURTHER LIBRARY...
#
# A library that Python loads may leave names open, and those that torch's libraries have are left open: they are bound
# when it is loaded. Of torch's libraries the linker needs nothing but what they are called, and yet it takes most of
# its time to read what is in them. They matter only for names that other libraries have as well, the C++ runtime's or
# those of the library FURTHER: the linker takes the first. So these names, and no others, are in what is made here.
#
# Where the linker doesn't tell what else it reads, nothing is made.

export LC_ALL=C
cxx=$1
further=$2
shift 2
folder=$(dirname "$0")/stand_ins
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT

# Each name once, without its version, and what it is. Of what isn't a library, as a linker's script, there are none.
names() {
  while read -r each; do
    case $each in
      *.a) nm --defined-only "$each" ;;
      *) nm -D --defined-only "$each" ;;
    esac 2> "$work/errors"
  done |
    awk 'NF == 3 { sub("@.*", "", $3); print $3, $2 ~ /[TWi]/ ? "function" : "object" }' | sort -u -k1,1
}

# What is linked to any library unasked.
"$cxx" -shared -Wl,-z,noexecstack -x assembler /dev/null -x none ${further:+"$further"} -o "$work/nothing.so" \
  -Wl,--trace | grep -o '/[^ ()]*\.so[.0-9]*' > "$work/read"
grep -q '/libc\.' "$work/read" || exit 0  # not even the C library: these aren't all
{
  {
    cat "$work/read"
    for each in stdc++ gcc gcc_eh; do "$cxx" "-print-file-name=lib$each.a"; done  # which some systems have instead
  } | names | cut -d' ' -f1
  printf '%s\n' __bss_start _edata _end  # the linker's own: others may see them if a library has them that it reads
} | sort -u > "$work/others"

mkdir "$folder" || exit
for library; do
  name=$(basename "$library")
  {
    echo .data
    echo "$library" | names | join - "$work/others" |
      sed 's/\(.*\) \(.*\)/.globl "\1"\n.type "\1", %\2\n.size "\1", 1\n"\1":/'
    echo .byte 0
  } > "$work/$name.s"
  "$cxx" -shared -nostdlib -Wl,-z,noexecstack "-Wl,-soname,$name" "$work/$name.s" -o "$folder/$name" || exit
done
