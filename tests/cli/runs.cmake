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
