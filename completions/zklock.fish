# Completion of zklock for fish. zklock itself lists the words that fit.

function __zklock_complete
    set -l words (commandline -opc)
    set words[1] (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l current (commandline -ct)
    set -l found ($words[1] --complete $words[2..-1] "$current" 2>/dev/null)
    switch "$found[1]"
        case ':files'
            __fish_complete_path "$current"
        case ':command *'
            set -l first (string replace ':command ' '' -- $found[1])
            string match -qr '^[0-9]{1,6}$' -- $first; or return
            # The command's own completion, as if it were typed alone.
            set -l command (string escape -- $words) $current
            set -e command[1..(math $first + 1)]
            complete -C "$command"
        case '*'
            printf '%s\n' $found
    end
end

complete -c zklock -f -a '(__zklock_complete)'
