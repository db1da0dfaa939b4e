#compdef gpugate
# Completion of gpugate for zsh: source <(gpugate completion zsh), or as a file _gpugate in a directory of $fpath.

_gpugate() {
    local line directive=0
    local -a found

    for line in "${(@f)$(_call_program gpugate gpugate __complete "${(@q)${(@Q)words[2,CURRENT]}}" 2>/dev/null)}"; do
        if [[ $line == :* ]]; then
            directive=${line#:}
        elif [[ $line == *$'\t'* ]]; then
            found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
        elif [[ -n $line ]]; then
            found+=("${line//:/\\:}")
        fi
    done
    (( $#found )) && _describe -V gpugate found
    if (( directive == 0 )); then
        compset -P '*='
        _files
    fi
}

if [[ $funcstack[1] == _gpugate ]]; then
    _gpugate "$@"
else
    compdef _gpugate gpugate
fi
