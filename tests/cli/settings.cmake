# A setting means the same wherever and however it is written, and so does a text: the runs end in the same bytes.
#   cmake -DPROGRAM=<fovea> -DDIR=<a folder to write in> -P settings.cmake

include("${CMAKE_CURRENT_LIST_DIR}/expect.cmake")
file(REMOVE_RECURSE "${DIR}")
file(MAKE_DIRECTORY "${DIR}/elsewhere")
file(WRITE "${DIR}/text.txt" "the key to the cabinets is rusted.\nthe keys to the cabinet are bent.\n")
file(WRITE "${DIR}/names.txt" "anna\nbob\nclara\ndan\neva\nfritz\ngerda\n")
set(small --layers 1 --heads 2 --d-model 8 --context 5 --batch 3 --threads 1)

# --- Switches, numbers and texts ----------------------------------------------------------------------------

function(same_run run like)
  same("${run}/log.jsonl" "${like}/log.jsonl")
  same("${run}/config.toml" "${like}/config.toml")
endfunction()

expect(0 "6 lines" train --text names.txt --lines ${small} --steps 3 --run lines)
set(number 0)
foreach(switch IN ITEMS "--lines=true" "--lines=yes" "--lines=on" "--lines=1" "--lines=false;--lines")
  math(EXPR number "${number} + 1")
  expect(0 "6 lines" train --text names.txt ${switch} ${small} --steps 3 --run switch${number})
  same_run(switch${number} lines)
endforeach()
foreach(entry IN ITEMS "lines = true" "lines = 1")
  math(EXPR number "${number} + 1")
  file(WRITE "${DIR}/lines.toml" "text = \"names.txt\"\n${entry}\n")
  expect(0 "6 lines" train --config lines.toml ${small} --steps 3 --run switch${number})
  same_run(switch${number} lines)
endforeach()
expect(0 "tokens" train --text names.txt --validation 0 ${small} --steps 3 --run text)
expect(0 "tokens" train --text names.txt --validation 0 --lines=no ${small} --steps 3 --run no)
same_run(no text)

expect(0 "10 steps" train --text text.txt ${small} --steps 10 --lr 2e-3 --run ten)
expect(0 "10 steps" train --text text.txt ${small} --steps 010 --lr 0.002 --run leading)
same_run(leading ten)
string(ASCII 239 187 191 mark)
file(WRITE "${DIR}/valid.toml" "${mark}# A byte order mark, and all that TOML allows.\nsteps = 1_0\n\"\\u006cr\" = 2.0E-3\ntext = \"\"\"\ntext.txt\"\"\"\nlayers=+1\n")
expect(0 "10 steps" train --config valid.toml ${small} --run valid)
same_run(valid ten)

# A path in a file starts from its folder. What the command line names takes the place of a task or text there.
file(WRITE "${DIR}/elsewhere/up.toml" "text = '../text.txt'\nsteps = 10\nlr = 2e-3\n")
expect(0 "10 steps" train --config elsewhere/up.toml ${small} --run up)
expect(0 "validation loss" eval up)
expect(1 "not learned" train --config elsewhere/up.toml --task copy ${small} --run instead)
file(WRITE "${DIR}/task.toml" "task = 'copy'\nsteps = 10\nlr = 2e-3\n")
expect(0 "10 steps" train --config task.toml --text text.txt ${small} --run text_instead)
same_run(text_instead ten)

# Paths with all that a file name may have, and a run that is used from another folder.
string(ASCII 1 2 127 27 control)
foreach(name IN ITEMS "a#b" "it's" "a \"b\" 'c'" "back\\slash" "tab\tline\nend" "${control}" "Ünïcødé 漢" "[a]" "{a}" "-a" "\\u0041")
  file(COPY_FILE "${DIR}/text.txt" "${DIR}/elsewhere/${name}")
  file(REMOVE_RECURSE "${DIR}/path")
  expect(0 "tokens" train "--text=elsewhere/${name}" ${small} --steps 2 --run path)
  expect(0 "validation loss" eval path)
  execute_process(COMMAND "${PROGRAM}" eval "${DIR}/path" WORKING_DIRECTORY "${DIR}/elsewhere"
    RESULT_VARIABLE result ERROR_VARIABLE errors OUTPUT_QUIET)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "fovea eval of a run on '${name}', from another folder: ${errors}")
  endif()
endforeach()
string(ASCII 255 not_utf8)
file(COPY_FILE "${DIR}/text.txt" "${DIR}/${not_utf8}.txt")
refuse("not UTF-8.*rename it" train --text "${not_utf8}.txt" ${small} --run unwritten)
if(EXISTS "${DIR}/unwritten")
  message(SEND_ERROR "a run was begun whose settings can't be written")
endif()

# An empty value is that value.
expect(0 "^[^\n]*\n?[^\n]*" sample ten --prompt= --tokens 3)
expect(0 "passed, 0 failed" check --filter= --seeds 1 --order 1)

# The help shows the defaults that hold for what is chosen.
expect(0 "--warmup INT=2 " train --text text.txt --steps 20 --help)
expect(0 "--final-lr NUMBER=0.0001\n.*recommended for the lines of a text" train --text names.txt --lines=on --lr 0.003 --help)
expect(0 "--steps INT=3500 .*recommended for the task sorting" train --help --task sorting)
expect(0 "--d-model INT=9 " train --config valid.toml --d-model 9 --help)

# What has no effect is said.
expect(0 "--context has no effect: with --lines it is" train --text names.txt --lines ${small} --steps 1 --run note)

# --- Texts --------------------------------------------------------------------------------------------------

# One list of names, as other systems and editors save it.
file(READ "${DIR}/names.txt" names)
string(ASCII 13 return)
string(REPLACE "\n" "${return}\n" windows "${names}")
string(REPLACE "\n" "${return}" mac "${names}")
string(REPLACE "\n" "\n\n" blank "${names}")
string(STRIP "${names}" no_end)
foreach(tokenizer IN ITEMS characters bytes byte-pairs)
  expect(0 "6 lines" train --text names.txt --lines --tokenizer ${tokenizer} ${small} --steps 3 --run ${tokenizer})
  foreach(form IN ITEMS "${windows}" "${mac}" "${mark}${names}" "${mark}${windows}" "${blank}" "\n${no_end}")
    math(EXPR number "${number} + 1")
    file(WRITE "${DIR}/form.txt" "${form}")
    expect(0 "6 lines" train --text form.txt --lines --tokenizer ${tokenizer} ${small} --steps 3 --run form${number})
    same("form${number}/log.jsonl" "${tokenizer}/log.jsonl")
    expect(0 "validation loss" eval ${tokenizer} --text form.txt)
  endforeach()
endforeach()
file(READ "${DIR}/text.txt" text)
string(REPLACE "\n" "${return}\n" windows "${text}")
file(WRITE "${DIR}/form.txt" "${mark}${windows}")
expect(0 "10 steps" train --text form.txt ${small} --steps 10 --lr 2e-3 --run form)
same(form/log.jsonl ten/log.jsonl)
string(ASCII 255 254 utf16)
file(WRITE "${DIR}/utf16.txt" "${utf16}a")
refuse("utf16.txt: the text is in UTF-16: convert it" train --text utf16.txt)
refuse("utf16.txt: the text is in UTF-16: convert it" train --text utf16.txt --lines --tokenizer bytes)
file(WRITE "${DIR}/latin.txt" "caf${not_utf8}\n${not_utf8}\n")
refuse("latin.txt: byte 0xFF at position 3 is not UTF-8: use a tokenizer of bytes" train --text latin.txt)
expect(0 "vocabulary of 256" train --text latin.txt --validation 0 --tokenizer bytes ${small} --steps 2)

# A tokenizer's folder is found from anywhere, and may be gone once it has been used.
file(COPY "${CMAKE_CURRENT_LIST_DIR}/../golden/bpe" DESTINATION "${DIR}/elsewhere")
expect(0 "tokens" train --text text.txt --tokenizer elsewhere/bpe --validation 0.4 ${small} --steps 2 --run folder)
execute_process(COMMAND "${PROGRAM}" eval "${DIR}/folder" WORKING_DIRECTORY "${DIR}/elsewhere"
  RESULT_VARIABLE result ERROR_VARIABLE errors OUTPUT_QUIET)
if(NOT result EQUAL 0)
  message(SEND_ERROR "fovea eval of a run with a tokenizer of its own, from another folder: ${errors}")
endif()
file(REMOVE_RECURSE "${DIR}/elsewhere/bpe")
expect(0 "validation loss" eval folder)

# A text that has moved is recognised by its content.
expect(0 "tokens" train --text text.txt ${small} --steps 6 --minutes 1e-9 --run moved)
file(RENAME "${DIR}/text.txt" "${DIR}/elsewhere/moved.txt")
refuse("is not there: if it has moved, name its place with --text" eval moved)
refuse("is not there: if it has moved, name its place with --text" train --resume moved)
expect(0 "validation loss" eval moved --text elsewhere/moved.txt)
refuse("names.txt: the data have changed since the run began: they were 69 bytes" eval moved --text names.txt)
refuse("names.txt: the data have changed since the run began" train --resume moved --text names.txt)
expect(0 "6 steps" train --resume moved --text elsewhere/moved.txt)
expect(0 "." sample moved --tokens 3)
