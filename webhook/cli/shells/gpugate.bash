# Completion of gpugate for bash 4.3 or newer: source <(gpugate completion bash)

_gpugate_complete() {
    local line word fragment prefix directive=0
    local -a words=() lines=()

    # bash takes = and : for words of their own; gpugate gets the arguments whole.
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        if ((${#words[@]})) && [[ $word == [=:] || ${words[-1]} == *[=:] ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
    word=${words[-1]}
    fragment=${COMP_WORDS[COMP_CWORD]}
    [[ $fragment == [=:] ]] && fragment=
    prefix=${word%"$fragment"}

    mapfile -t lines < <("$1" __complete "${words[@]}" 2>/dev/null)
    COMPREPLY=()
    for line in "${lines[@]}"; do
        if [[ $line == :* ]]; then
            directive=${line#:}
        else
            line=${line%%$'\t'*}
            COMPREPLY+=("${line#"$prefix"}")
        fi
    done
    if ((directive == 0)); then
        compopt -o filenames 2>/dev/null
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$fragment")
    fi
}

complete -F _gpugate_complete gpugate
