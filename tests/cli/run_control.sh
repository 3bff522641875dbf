#!/bin/sh
# Runs the program as its surroundings may treat it: two at once, without standard streams, with signals.
#   run_control.sh PROGRAM DIR    DIR is made anew
set -u
program=$1
rm -rf "$2" && mkdir -p "$2" && cd "$2" || exit 1
printf 'the key to the cabinets is rusted.\nthe keys to the cabinet are bent.\n' > text.txt
tiny="--text text.txt --layers 1 --heads 2 --d-model 8 --context 5 --batch 3 --threads 1"
failures=0

fail() {
  echo "run_control: $*"
  failures=$((failures + 1))
}

# expect STATUS FOUND WHAT: both must be the same.
expect() {
  [ "$1" = "$2" ] || fail "$3: '$1' expected, and it is '$2'"
}

# Two runs that start at the same instant have a folder each, with their own settings.
for pair in 1 2 3 4 5 6 7 8 9 10; do
  mkdir pair && cd pair || exit 1
  "$program" train --text ../text.txt ${tiny#* * } --steps 1 --seed 11 > first 2>&1 &
  "$program" train --text ../text.txt ${tiny#* * } --steps 1 --seed 22 > second 2>&1
  expect 0 $? "the second of pair $pair"
  wait $!
  expect 0 $? "the first of pair $pair"
  expect "11 22" "$(sed -n 's/^seed *= *//p' runs/*/config.toml | sort | paste -sd' ')" "the seeds of pair $pair"
  for each in first second; do
    seed=$(sed -n 's/^seed \([0-9]*\),.*/\1/p' $each)
    grep -q "^seed *= *$seed\$" "$(sed -n 's/^run  *//p' $each)/config.toml" || fail "pair $pair: settings of $each"
  done
  cd .. && rm -r pair
done

# Of two that name the same folder, one gets it.
for pair in 1 2 3 4 5 6 7 8 9 10; do
  "$program" train $tiny --steps 1 --seed 11 --run named > /dev/null 2> first &
  "$program" train $tiny --steps 1 --seed 22 --run named > /dev/null 2> second
  status=$?
  wait $!
  expect 2 $((status + $?)) "the sum of statuses of pair $pair"
  loser=$([ $status -eq 0 ] && echo first || echo second)
  expect 1 "$(cat first second | wc -l)" "the lines of errors of pair $pair"
  grep -q "another run is being written in 'named'\|named has a run already" $loser || fail "$(cat $loser)"
  [ $status -eq 0 ] && seed=22 || seed=11
  grep -q "^seed *= *$seed\$" named/config.toml || fail "pair $pair: the settings are not the winner's"
  rm -r named
done

# Nothing in a run's folder is followed out of it, and a pipe there does not make the program wait.
"$program" train $tiny --steps 2 --run whole > /dev/null || fail "train --run whole"
for name in log.jsonl config.toml checkpoints checkpoints/step-00000002.safetensors events.out.tfevents.fovea; do
  for kind in link pipe; do
    cp -r whole foreign && mv foreign/$name mine
    if [ $kind = link ]; then ln -s "$PWD/mine" foreign/$name; else mkfifo foreign/$name; fi
    timeout 10 "$program" train --resume foreign > /dev/null 2> error
    expect 2 $? "resuming with a $kind for $name"
    grep -q "foreign/$name' is a \(symbolic link\|named pipe\)" error || fail "a $kind for $name: $(cat error)"
    diff -r mine whole/$name > /dev/null || fail "a $kind for $name: the file outside was changed"
    rm -r foreign mine
  done
done
timeout 10 "$program" eval whole > /dev/null || fail "eval whole"

exit $((failures > 0))
