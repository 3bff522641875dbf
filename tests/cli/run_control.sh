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

# With standard streams that are closed or full, a run is whole, and an error has its exit status.
for closed in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
  eval "\"$program\" train $tiny --steps 2 --run closed $closed" > output 2> errors
  expect 0 $? "train with $closed"
  cmp -s closed/log.jsonl whole/log.jsonl || fail "train with $closed: the log is another one"
  eval "\"$program\" train $tiny --nosuch $closed" > output 2> errors
  expect 2 $? "an error with $closed"
  rm -r closed
done
if [ -c /dev/full ]; then
  "$program" train $tiny --steps 2 --run full > /dev/full 2> errors
  expect 2 $? "train into a full disk"
  grep -q "^fovea: can't write to the standard output$" errors || fail "a full disk: $(cat errors)"
  cmp -s full/log.jsonl whole/log.jsonl || fail "train into a full disk: the log is another one"
  "$program" train $tiny --nosuch 2> /dev/full
  expect 2 $? "an error into a full disk"
  "$program" train --help > /dev/full 2> errors
  expect 2 $? "--help into a full disk"
fi

# wait_for_step N RUN: until the log of a run has it.
wait_for_step() {
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    grep -qs "\"step\":$1," "$2/log.jsonl" && return
    sleep 0.25
  done
  fail "$2 does not come to step $1"
}

# latest RUN: the step of its latest checkpoint.
latest() {
  ls "$1/checkpoints" | sed -n 's/^step-0*\([0-9]*\).*/\1/p' | sort -n | tail -1
}

# A signal stops a run after it has saved; a reader that goes away does so, too.
long="$tiny --steps 1000000 --evaluate-every 0 --checkpoint-every 0 --minutes 1"
for each in TERM:143 HUP:129; do
  "$program" train $long --run stopped > output 2> errors &
  wait_for_step 1 stopped
  kill -${each%:*} $!
  wait $!
  expect ${each#*:} $? "the status after SIG${each%:*}"
  [ "$(latest stopped)" -gt 0 ] || fail "SIG${each%:*}: nothing was saved"
  expect 1 "$(grep -c "^fovea: interrupted at step $(latest stopped); continue with: fovea train --resume stopped$" errors)" \
    "the lines that tell of SIG${each%:*}"
  rm -r stopped
done
{ "$program" train $tiny --steps 3000 --checkpoint-every 0 --run piped; echo $? > status; } 2> errors | head -1 > output
expect 141 "$(cat status)" "the status after SIGPIPE"
[ "$(latest piped)" -gt 0 ] || fail "SIGPIPE: nothing was saved"

# What is ignored stays ignored: SIGHUP under nohup, and SIGINT, which a shell makes its background programs ignore.
(
  trap '' HUP
  "$program" train $long --run ignoring > output 2> errors &
  wait_for_step 1 ignoring
  kill -HUP $!
  kill -INT $!
  sleep 0.2
  kill -0 $! || fail "an ignored signal ended the run"
  kill -TERM $!
  wait $!
  expect 143 $? "the status after SIGTERM under nohup"
  exit $((failures > 0))
) || failures=$((failures + 1))

exit $((failures > 0))
