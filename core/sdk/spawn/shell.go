package spawn

import (
	"bytes"
	"path"
	"strings"
)

// word is a word of a command line. The program receives a fixed one as it is; the shell
// expands others to a text that is unknown here.
type word struct {
	text  string
	fixed bool
	bare  bool // not quoted at all
}

// Shell recognizes a command line that runs Codex. dir is where it starts.
func Shell(command, dir string) (Spawn, bool) {
	if !strings.Contains(command, Codex) {
		return Spawn{}, false
	}
	for _, words := range commands(command) {
		if len(words) > 1 && words[0].text == "cd" && words[1].fixed {
			dir = join(dir, words[1].text)
			continue
		}
		tries := 0 // the name may be an argument of the program that runs it: env, timeout, npx
		for i, w := range words {
			if path.Base(w.text) == Codex && tries < 4 {
				tries++
				if s, ok := exec(words[i+1:], dir); ok {
					return s, true
				}
			}
		}
	}
	return Spawn{}, false
}

// exec reads the arguments of codex: [flags] exec [flags] [resume [ID]] [flags] [PROMPT].
func exec(words []word, dir string) (Spawn, bool) {
	var plain []word // those that are no flags
	literal := false
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case literal || !strings.HasPrefix(w.text, "-") || w.text == "-":
			plain = append(plain, w)
		case w.text == "--":
			literal = true
		case takesValue(w.text) && i+1 < len(words):
			i++
			if w.text == "-C" || w.text == "--cd" {
				dir = join(dir, words[i].text)
				if !words[i].fixed {
					dir = ""
				}
			}
		case strings.HasPrefix(w.text, "--cd="):
			dir = join(dir, strings.TrimPrefix(w.text, "--cd="))
		}
	}
	if len(plain) == 0 || plain[0].text != "exec" && plain[0].text != "e" {
		return Spawn{}, false
	}
	plain = plain[1:]
	s := Spawn{Agent: Codex}
	if len(plain) > 0 && plain[0].bare && plain[0].text == "resume" {
		if plain = plain[1:]; len(plain) > 0 && isUUID([]byte(plain[0].text)) && len(plain[0].text) == 36 {
			s.CorrelationID = ID(Codex, plain[0].text)
			plain = plain[1:]
		}
	}
	if len(plain) > 0 && plain[0].text != "-" {
		s.Task = plain[0].text
		if plain[0].fixed {
			s.CorrelationPrompt = Prompt(Codex, dir, s.Task)
		}
	}
	return s, true
}

func takesValue(flag string) bool {
	switch flag {
	case "-C", "--cd", "-c", "--config", "-m", "--model", "-s", "--sandbox", "-p", "--profile", "-i", "--image", "-a", "--ask-for-approval",
		"-o", "--output-last-message", "--output-schema", "--color", "--add-dir", "--enable", "--disable", "--local-provider":
		return true
	}
	return false
}

// commands splits a command line into simple commands, without expansions and control
// structures. It reads each byte once and keeps no nesting, because a command line is
// written by a model: mvdan.cc/sh (v3.14.1) takes 4 s and 512 MB of stack for 128 KiB of
// nested "(", and 512 KiB of them overflow the stack, which ends the process.
func commands(s string) (out [][]word) {
	var words []word
	var w word
	var text []byte // of w
	begun := false
	end := func() {
		if begun {
			w.text = string(text)
			words = append(words, w)
		}
		begun = false
	}
	next := func() {
		end()
		if len(words) > 0 {
			out = append(out, words)
		}
		words = nil
	}
	part := func(more string, fixed, bare bool) {
		if !begun {
			begun, w, text = true, word{fixed: true, bare: true}, text[:0]
		}
		text = append(text, more...)
		w.fixed, w.bare = w.fixed && fixed, w.bare && bare
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t':
			end()
		case '\n', ';', '|', '&', '(', ')':
			if c == '&' && i > 0 && (s[i-1] == '>' || s[i-1] == '<') {
				continue
			}
			next()
		case '<', '>':
			if begun && len(bytes.Trim(text, "0123456789")) == 0 { // of a descriptor
				begun = false
			}
			end()
			i = target(s, i)
		case '#':
			if begun {
				part("#", true, true)
				continue
			}
			if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
				i += n - 1
			} else {
				i = len(s)
			}
		case '\\':
			if i+1 < len(s) && s[i+1] != '\n' {
				part(s[i+1:i+2], true, false)
			}
			i++
		case '\'':
			n := strings.IndexByte(s[i+1:], '\'')
			if n < 0 {
				return out
			}
			part(s[i+1:i+1+n], true, false)
			i += n + 1
		case '"':
			quoted, fixed, n := double(s[i+1:])
			if n < 0 {
				return out
			}
			part(quoted, fixed, false)
			i += n
		case '$', '`':
			part(string(c), false, true)
		default:
			part(s[i:i+1], true, true)
		}
	}
	next()
	return out
}

// target is the last character of a redirection that begins at i.
func target(s string, i int) int {
	for i+1 < len(s) && strings.IndexByte("<>&| \t", s[i+1]) >= 0 {
		i++
	}
	for i+1 < len(s) && strings.IndexByte(" \t\n;|&()<>", s[i+1]) < 0 {
		i++
	}
	return i
}

// double reads a text in double quotes, up to and with the closing one, and returns
// its length; -1 when it does not close. The one expansion whose text is known is a
// literal: $(cat <<'EOF' … EOF).
func double(s string) (text string, fixed bool, length int) {
	var b strings.Builder
	fixed = true
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), fixed, i + 1
		case c == '\\' && i+1 < len(s):
			i++
			if strings.IndexByte("$`\"\\\n", s[i]) < 0 {
				b.WriteByte('\\')
			}
			if s[i] != '\n' {
				b.WriteByte(s[i])
			}
		case c == '$' && strings.HasPrefix(s[i:], "$(cat <<'"):
			body, n := here(s[i:])
			if n < 0 {
				return "", false, -1
			}
			b.WriteString(body)
			i += n - 1
		case c == '$' || c == '`':
			fixed = false
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return "", false, -1
}

// here reads $(cat <<'TAG' … TAG) and returns the text between the tags, and the length of all.
func here(s string) (body string, length int) {
	rest := s[len("$(cat <<'"):]
	tag, rest, ok := strings.Cut(rest, "'\n")
	if !ok {
		return "", -1
	}
	body, rest, ok = strings.Cut("\n"+rest, "\n"+tag+"\n")
	if !ok {
		return "", -1
	}
	i := strings.IndexByte(rest, ')')
	if i < 0 {
		return "", -1
	}
	return strings.TrimPrefix(body, "\n"), len(s) - len(rest) + i + 1
}
