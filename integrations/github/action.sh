#!/usr/bin/env bash
# The steps of action.yml: action.sh install | check | simulate | comment | verdict.
#
# Inputs come in INPUT_* and are data: each is one argument, or one for each line, and nothing is evaluated. Python runs
# isolated (-I), because the working directory holds files of whoever opened the pull request and `import` would read them.
# It runs in the bash 3.2 of macOS too, which has no mapfile and takes an empty array for an unset one.
set -euo pipefail

readonly action="${GITHUB_ACTION_PATH:?is set by GitHub}"
readonly environment="${RUNNER_TEMP:?is set by GitHub}/gpugate"

fail() {
    printf '::error title=gpugate::%s\n' "$1"
    exit 2
}

# An input that must be one line, because it is a file name or is written to GITHUB_OUTPUT, where each line is an output.
one_line() {
    case "$2" in
    *$'\n'* | *$'\r'*) fail "the input $1 must be one line" ;;
    esac
}

# The lines of $1 that are not blank, without the spaces around them, as elements of the array `lines`.
split_lines() {
    local line
    lines=()
    while IFS=$' \t\r' read -r line || [ -n "$line" ]; do
        if [ -n "$line" ]; then lines+=("$line"); fi
    done <<<"$1"
}

install() {
    local python="${INPUT_PYTHON:-python3}"
    command -v -- "$python" >/dev/null || fail "the Python of the input python is not there; add a step that installs one"
    "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "gpugate needs Python 3.11 or newer"
    "$python" -I -m venv "$environment"
    local pip=("$environment/bin/python" -I -m pip --disable-pip-version-check --quiet install)
    "${pip[@]}" --require-hashes -r "$action/requirements/check.txt" -r "$action/requirements/build.txt"
    # From the checkout of this action, with the build tools installed above: no further package is fetched.
    "${pip[@]}" --no-deps --no-build-isolation --no-index "$action"
    "$environment/bin/python" -I -m gpugate --version
}

check() {
    local lines arguments=() summary results sarif="${INPUT_SARIF_FILE:-gpugate.sarif}" code=0
    summary="$RUNNER_TEMP/gpugate-summary.md"
    results="$RUNNER_TEMP/gpugate-results.json"
    one_line sarif-file "$sarif"
    one_line policy-file "${INPUT_POLICY_FILE:-}"
    one_line config "${INPUT_CONFIG:-}"
    one_line fail-on "${INPUT_FAIL_ON:-}"
    # A report of an earlier step must not pass for that of this one.
    rm -f -- "$sarif" "$summary" "$results"

    arguments+=(-o github "--output=sarif=$sarif" "--output=markdown=$summary" "--output=json=$results")
    case "${INPUT_TRUST:-auto}" in
    auto) if [ -n "${GITHUB_BASE_REF:-}" ]; then trust_base; fi ;;
    base) trust_base ;;
    change) ;;
    *) fail "the input trust takes auto, base or change" ;;
    esac
    # What is not said here is left to the project file.
    if [ -n "${INPUT_FAIL_ON:-}" ]; then arguments+=("--fail-on=$INPUT_FAIL_ON"); fi
    if [ -n "${INPUT_POLICY_FILE:-}" ]; then arguments+=("--policy-file=$INPUT_POLICY_FILE"); fi
    if [ -n "${INPUT_CONFIG:-}" ]; then arguments+=("--config=$INPUT_CONFIG"); fi
    split_lines "${INPUT_ARGS:-}"
    arguments+=(${lines[@]+"${lines[@]}"})
    split_lines "${INPUT_PATHS:-}"
    # What follows two dashes is a path, whatever it looks like.
    arguments+=(-- ${lines[@]+"${lines[@]}"})

    "$environment/bin/python" -I -m gpugate check "${arguments[@]}" || code=$?

    if [ -s "$summary" ]; then cat -- "$summary" >>"$GITHUB_STEP_SUMMARY"; fi
    if [ ! -s "$sarif" ]; then sarif=; fi
    {
        printf 'exit-code=%s\n' "$code"
        printf 'sarif-file=%s\n' "$sarif"
        printf 'findings=%s\n' "$(count "$results")"
    } >>"$GITHUB_OUTPUT"
}

# What a pull request that changes the policy file would deny. The file in force is that of the branch it is for.
simulate() {
    local lines arguments=() line report results base policy="${INPUT_POLICY_FILE:-}" code=0
    split_lines "${INPUT_SIMULATE_FROM:-}"
    if [ "${#lines[@]}" -eq 0 ] || [ -z "${GITHUB_BASE_REF:-}" ]; then return; fi
    if [ -z "$policy" ]; then fail "the input simulate-from needs the input policy-file"; fi
    one_line policy-file "$policy"
    one_line max-new-denials "${INPUT_MAX_NEW_DENIALS:-}"
    fetch_base
    base="refs/remotes/origin/$GITHUB_BASE_REF"
    git --literal-pathspecs diff --quiet --no-ext-diff --no-textconv --end-of-options "$base" -- "$policy" || code=$?
    case "$code" in
    0) echo "gpugate: the policy file did not change" && return ;;
    1) ;;
    *) fail "git cannot compare the policy file with the base branch" ;;
    esac
    report="$RUNNER_TEMP/gpugate-simulation.md"
    results="$RUNNER_TEMP/gpugate-simulation.json"
    rm -f -- "$report" "$results"
    arguments=("--candidate=$policy" "--base=$base" "--output=markdown=$report" "--output=json=$results" --output=text)
    for line in "${lines[@]}"; do arguments+=("--from=$line"); done
    if [ -n "${INPUT_MAX_NEW_DENIALS:-}" ]; then arguments+=("--max-new-denials=$INPUT_MAX_NEW_DENIALS"); fi

    code=0
    "$environment/bin/python" -I -m gpugate simulate "${arguments[@]}" || code=$?

    if [ -s "$report" ]; then cat -- "$report" >>"$GITHUB_STEP_SUMMARY"; else report=; fi
    {
        printf 'exit-code=%s\n' "$code"
        printf 'simulation-file=%s\n' "$report"
        printf 'new-denials=%s\n' "$(new_denials "$results")"
    } >>"$GITHUB_OUTPUT"
}

new_denials() {
    if [ ! -s "$1" ]; then return; fi
    "$environment/bin/python" -I -c 'import json, sys; print(json.load(open(sys.argv[1], encoding="utf-8"))["denied"]["owners"])' "$1"
}

# The report is in the summary of the job too, so a comment that cannot be written fails nothing.
comment() {
    if [ -z "${INPUT_TOKEN:-}" ] || [ -z "${SIMULATION_FILE:-}" ]; then return; fi
    "$environment/bin/python" -I "$action/integrations/github/comment.py" "$SIMULATION_FILE" ||
        echo "::warning title=gpugate::the comment on the pull request could not be written; the report is in the summary of the job"
}

# A pull request does not choose what it is checked by: its project file and policies are those of the branch it is for.
trust_base() {
    fetch_base
    arguments+=(--trust=base "--base=refs/remotes/origin/$GITHUB_BASE_REF")
}

fetch_base() {
    local branch="${GITHUB_BASE_REF:?is set for pull requests}"
    one_line GITHUB_BASE_REF "$branch"
    # A shallow checkout has the merge commit alone.
    if ! git rev-parse --quiet --verify --end-of-options "refs/remotes/origin/$branch^{commit}" >/dev/null; then
        git -c core.hooksPath=/dev/null fetch --quiet --no-tags --no-recurse-submodules --depth=1 origin "+refs/heads/$branch:refs/remotes/origin/$branch" ||
            fail "the base branch is not in the checkout; give fetch-depth: 0 to actions/checkout"
    fi
}

count() {
    if [ ! -s "$1" ]; then
        echo 0
        return
    fi
    "$environment/bin/python" -I -c 'import json, sys; print(len(json.load(open(sys.argv[1], encoding="utf-8"))["findings"]))' "$1"
}

verdict() {
    case "${SIMULATION_EXIT_CODE:-0}" in
    0 | 1) ;;
    2) fail "gpugate simulate was not run as it must be; its message is in the step of the simulation" ;;
    3) fail "the files of the input simulate-from contain nothing to evaluate" ;;
    *) fail "a file of the input simulate-from could not be read; it is named in the step of the simulation" ;;
    esac
    case "${EXIT_CODE:-}" in
    0) if [ "${SIMULATION_EXIT_CODE:-0}" = 1 ] && [ "${INPUT_FAIL:-true}" != false ]; then exit 1; fi ;;
    1) if [ "${INPUT_FAIL:-true}" != false ]; then exit 1; fi ;;
    2) fail "gpugate check was not run as it must be; its message is in the step before" ;;
    3) fail "there was nothing to check; correct the input paths, or add --allow-empty to the input args" ;;
    4) fail "something could not be read or judged; it is listed in the step before" ;;
    *) fail "gpugate check did not end as it should" ;;
    esac
}

case "${1:-}" in
install | check | simulate | comment | verdict) "$1" ;;
*) fail "action.sh takes one of install, check, simulate, comment and verdict" ;;
esac
