# Completion of gpugate for fish: gpugate completion fish > ~/.config/fish/completions/gpugate.fish

function __gpugate_complete
    set -l current (commandline --current-token)
    set -l words (commandline --tokenize --cut-at-cursor --current-process) "$current"
    for line in (gpugate __complete $words[2..-1] 2>/dev/null)
        if not string match --quiet ':*' -- $line
            echo $line
        else if test $line = ':0'
            # Behind FORMAT= a file is meant.
            set -l prefix (string match --regex '^.*=' -- $current)
            for path in (__fish_complete_path (string replace --regex '^.*=' '' -- $current))
                echo "$prefix$path"
            end
        end
    end
end

complete --command gpugate --no-files --keep-order --arguments '(__gpugate_complete)'
