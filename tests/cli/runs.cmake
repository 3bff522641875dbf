# Runs are extended, branched and listed.
#   cmake -DPROGRAM=<fovea> -DDIR=<a folder to write in> -P runs.cmake

include("${CMAKE_CURRENT_LIST_DIR}/expect.cmake")
file(REMOVE_RECURSE "${DIR}")
file(MAKE_DIRECTORY "${DIR}")
file(WRITE "${DIR}/text.txt" "the key to the cabinets is rusted.\nthe keys to the cabinet are bent.\n")
set(small --layers 1 --heads 2 --d-model 8 --context 5 --batch 3 --threads 1)
set(constant --text text.txt ${small} --schedule constant --warmup 2 --lr 0.03)

# --- More steps ---------------------------------------------------------------------------------------------

# A run that is extended ends where one of that length from the beginning does. Its log has one evaluation more.
expect(0 "30 steps" train ${constant} --steps 30 --evaluate-every 10 --run whole)
expect(0 "20 steps" train ${constant} --steps 20 --evaluate-every 10 --run extended)
expect(0 "30 steps" train --resume extended --steps 30)
same(extended/log.jsonl whole/log.jsonl)
same(extended/checkpoints/step-00000030.safetensors whole/checkpoints/step-00000030.safetensors)
same(extended/config.toml whole/config.toml)
expect(0 "30 steps" train --resume extended)
refuse("--steps 20: the run has taken 30 steps already" train --resume extended --steps 20)
expect(0 "20 steps" train --text text.txt ${small} --steps 20 --run cosine)
refuse("followed from its 20 steps.* --from cosine" train --resume cosine --steps 30)
refuse("--lr can't be changed.* --from" train --resume cosine --lr 0.1)

# --- Settings that were edited ------------------------------------------------------------------------------

# resume_with(<regular expression in config.toml> <replacement> <what the error says>): refused, and the run unchanged.
function(resume_with pattern replacement message)
  file(READ "${DIR}/edited/config.toml" settings)
  string(REGEX REPLACE "${pattern}" "${replacement}" changed "${settings}")
  if(changed STREQUAL settings)
    message(SEND_ERROR "config.toml has no match of ${pattern}")
  endif()
  file(WRITE "${DIR}/edited/config.toml" "${changed}")
  refuse("${message}" train --resume edited)
  file(WRITE "${DIR}/edited/config.toml" "${settings}")
endfunction()

expect(0 "20 steps" train --text text.txt ${small} --steps 20 --run edited)
resume_with("\nlr=[^\n]*" "\nlr=0.02" "made with lr = [0-9.]+, but its config.toml has lr = 0.02: .* --from edited")
resume_with("\nbatch=3" "\nbatch=4" "made with batch = 3, but its config.toml has batch = 4")
resume_with("\ndropout=[^\n]*" "\ndropout=0.5" "has dropout = 0.5")
resume_with("\noptimizer=[^\n]*" "\noptimizer=\"lion\"" "made with optimizer = \"adamw\", but its config.toml has optimizer = \"lion\"")
resume_with("\nseed=1" "\nseed=2" "has seed = 2")
resume_with("\nheads=2" "\nheads=4" "has heads = 4")
resume_with("\nsteps=20" "\nsteps=30" "followed from its 20 steps.* --from edited")
file(READ "${DIR}/edited/log.jsonl" log)
string(REPLACE "\"step\":7" "\"step\":8" log_changed "${log}")
file(WRITE "${DIR}/edited/log.jsonl" "${log_changed}")
refuse("log.jsonl' does not have the bytes that it had" train --resume edited)
file(WRITE "${DIR}/edited/log.jsonl" "${log}")
expect(0 "20 steps" train --resume edited)

# --- Another run's weights ----------------------------------------------------------------------------------

expect(0 "7 steps" train --from whole --steps 7 --lr 0.003 --run branch)
# The first loss is that of the trained weights, far below ln V.
expect(0 "loss +[12]\\.[0-6]" train --from whole --steps 7 --run again)
refuse("config.heads is '2' there, and '4'" train --from whole --heads 4 --run heads)
refuse("--from and --resume exclude each other" train --from whole --resume cosine)
file(WRITE "${DIR}/other.txt" "the bent keys are rusted.\nthe cabinet is the key.\nthe keys are the cabinets.\n")
expect(0 "7 steps" train --from whole --text other.txt --steps 7 --run other)
file(WRITE "${DIR}/foreign.txt" "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.\n")
refuse("foreign.txt" train --from whole --text foreign.txt --steps 7 --run foreign)

# --- Runs without checkpoints -------------------------------------------------------------------------------

expect(1 "has not learned the task" train --task parity --steps 3 --batch 2 --threads 1 --no-checkpoints --run sweep)
if(EXISTS "${DIR}/sweep/checkpoints" OR NOT EXISTS "${DIR}/sweep/log.jsonl" OR NOT EXISTS "${DIR}/sweep/score.json")
  message(SEND_ERROR "a run without checkpoints keeps its log and its score, and nothing else")
endif()
refuse("has no checkpoint, so there is nothing to continue" train --resume sweep)
refuse("has no checkpoint, so there is nothing to begin from" train --from sweep)
refuse("no checkpoint" sample sweep)

# --- The list -----------------------------------------------------------------------------------------------

expect(0 "run .* lr .*\nbranch +7/7 +[0-9.]+ +[0-9.]+ .*0\\.003.*\nsweep +3/3 .*answers right: .*not reached" runs .)
expect(0 "\"run\":\"branch\".*\"lr\":\"0.003\".*\"step\":7" runs . --json)
file(WRITE "${DIR}/cosine/config.toml" "steps = = 3\n")
expect(0 "cosine +[^\n]*config.toml: this is not TOML" runs .)
file(MAKE_DIRECTORY "${DIR}/empty")
expect(0 "there is no run in empty" runs empty)
refuse("there is no folder nowhere" runs nowhere)
