# Completion of zklock for bash. zklock itself lists the words that fit.

_zklock() {
  # Unlike zklock, bash also splits the line at = and :. Join words without white space between them.
  local line=${COMP_LINE:0:COMP_POINT} words=() starts=() i piece
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    piece=${COMP_WORDS[i]}
    if ((i == 0)) || [[ $line == [[:space:]]* ]]; then
      line=${line#"${line%%[![:space:]]*}"}
      words+=("") starts+=("$i")
    fi
    # Take only the part of the last word before the cursor.
    ((i < COMP_CWORD)) || piece=$line
    words[-1]+=$piece
    line=${line#"$piece"}
  done

  # Remove the quotes of all words but the current one, without an expansion, which could execute commands.
  for ((i = 0; i < ${#words[@]} - 1; ++i)); do
    line=${words[i]} words[i]=
    while [[ $line =~ ^([^\\\'\"]*)(\\(.)|\'([^\']*)\'|\"([^\"]*)\")(.*)$ ]]; do
      words[i]+=${BASH_REMATCH[1]}${BASH_REMATCH[3]}${BASH_REMATCH[4]}${BASH_REMATCH[5]} line=${BASH_REMATCH[6]}
    done
    words[i]+=$line
  done

  local current=${words[-1]} found
  mapfile -t found < <("${words[0]/#\~/$HOME}" --complete "${words[@]:1}" 2>/dev/null)
  COMPREPLY=()
  case ${found[0]-} in
    :files) compopt -o default ;;
    :command\ *)
      # Bash evaluates an index, which may execute commands: accept only a number.
      [[ ${found[0]} =~ ^:command\ ([0-9]{1,6})$ ]] || return
      local first=${starts[10#${BASH_REMATCH[1]} + 1]-}
      [[ $first ]] || return
      if declare -F _command_offset >/dev/null; then
        _command_offset "$first"
      else
        ((COMP_CWORD == first)) && mapfile -t COMPREPLY < <(compgen -c -- "$current")
        compopt -o default
      fi
      ;;
    *)
      # Bash replaces only the text after the last = or :.
      local before=${current%"${current##*[=:]}"} candidate
      for candidate in "${found[@]}"; do
        candidate=${candidate%%$'\t'*}
        printf -v candidate %q "${candidate#"$before"}"
        COMPREPLY+=("$candidate")
      done
      ;;
  esac
}

complete -F _zklock zklock
