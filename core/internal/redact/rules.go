package redact

import (
	"bytes"
	"regexp"
	"regexp/syntax"
)

// rule finds secrets in text.
type rule struct {
	name    string
	re      *regexp.Regexp
	literal []byte // part of everything that it finds; nil: not known
	group   int    // of re, which is the secret
}

// builtinRule is a rule for a well-known secret: the expression that finds it, and the marks by which the
// prefilter finds the places where the expression is worth its time.
type builtinRule struct {
	name    string
	literal string // part of every match
	group   int    // of the expression, which is the secret; 0: all of it
	re      string
	marks   []mark
}

// mark is a text in or before every match of a secret.
type mark struct {
	text   string   // three bytes or more; ? is any byte; in any letter case when fold is set
	seek   string   // the part of the text that the prefilter seeks; empty: the text
	odd    []string // windows for seek in the middle of a pair, where the usual one is too frequent
	groups [2]int   // 0 to 7, of the two windows of seek, see prefilter; BenchmarkClean shows whether they are well chosen
	fold   bool

	// Without rare the mark is before the secret, and candidateAfter checks it.
	rare  byte // the first such byte of the text is where candidateIn checks the mark
	word  bool // no letter, digit or _ is before the text
	token int  // at least so many bytes of a token follow the text
	dot   bool // a dot follows somewhere
}

// minToken is how many bytes of a token follow the text that it begins with, at least.
const minToken = 16

func builtin() []builtinRule {
	return []builtinRule{
		{"private_key", "PRIVATE KEY-----", 0, `-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`,
			[]mark{{text: "KEY----", rare: 'K', groups: [2]int{4, 4}}}},
		{"jwt", "eyJ", 0, `\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`,
			[]mark{{text: "eyJ", rare: 'J', word: true, dot: true, groups: [2]int{0, 2}}}},
		{"aws_access_key", "A", 0, `\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`,
			[]mark{{text: "A?IA", rare: 'I', token: minToken, groups: [2]int{4, 1}}}},
		{"aws_secret_key", "", 1, `(?i)secret_?access_?key[^A-Za-z0-9/+\n]{1,8}([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|\z)`,
			[]mark{{text: "access_ke", seek: "cce", odd: []string{"cces"}, fold: true, rare: 'k', groups: [2]int{1, 6}},
				{text: "accesske", seek: "cce", odd: []string{"cces"}, fold: true, rare: 'k', groups: [2]int{1, 6}}}},
		{"api_key", "sk-", 0, `\bsk-[A-Za-z0-9_-]{16,}`,
			[]mark{{text: "sk-", rare: 'k', word: true, token: minToken, groups: [2]int{0, 2}}}},
		{"github_token", "_", 0, `\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`,
			[]mark{
				{text: "ghp_", rare: 'g', token: minToken, groups: [2]int{5, 3}}, {text: "gho_", rare: 'g', token: minToken, groups: [2]int{5, 3}},
				{text: "ghu_", rare: 'g', token: minToken, groups: [2]int{5, 3}}, {text: "ghs_", rare: 'g', token: minToken, groups: [2]int{5, 3}},
				{text: "ghr_", rare: 'g', token: minToken, groups: [2]int{5, 3}}, {text: "github_pat_", seek: "ub_pa", rare: 'g', groups: [2]int{5, 5}},
			}},
		{"gitlab_token", "glpat-", 0, `\bglpat-[A-Za-z0-9_-]{16,}`,
			[]mark{{text: "glpat-", seek: "glpat", rare: 'g', groups: [2]int{5, 5}}}},
		{"slack_token", "xox", 0, `\bxox[a-z]-[A-Za-z0-9-]{16,}`,
			[]mark{{text: "xox?-", seek: "xox", rare: 'x', groups: [2]int{0, 2}}}},
		{"google_api_key", "AIza", 0, `\bAIza[A-Za-z0-9_-]{30,}`,
			[]mark{{text: "AIza", seek: "AIz", odd: []string{"AIza"}, rare: 'I', groups: [2]int{0, 4}}}},
		{"huggingface_token", "hf_", 0, `\bhf_[A-Za-z0-9]{20,}`,
			[]mark{{text: "hf_", rare: 'h', token: minToken, groups: [2]int{0, 3}}}},
		{"npm_token", "npm_", 0, `\bnpm_[A-Za-z0-9]{30,}`,
			[]mark{{text: "npm_", rare: 'p', token: minToken, groups: [2]int{5, 3}}}},
		{"url_password", "@", 1, `:(?:\\*/){2}[^/\s:@"'<>\\]*:([^/\s"'<>]+)@`,
			[]mark{
				{text: "://", groups: [2]int{1, 4}}, {text: `:/\`, odd: []string{`:/\/`, `:/\\`}, groups: [2]int{1, 4}},
				{text: `:\/`, odd: []string{`:\//`, `:\/\`}, groups: [2]int{1, 4}}, {text: `:\\`, odd: []string{`:\\/`, `:\\\`}, groups: [2]int{1, 4}},
			}},
		{"credentials", " ", 1, `(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{16,})`,
			[]mark{{text: "earer", fold: true, groups: [2]int{6, 7}}, {text: "basic", fold: true, groups: [2]int{6, 7}}}},
	}
}

func (s *builtinRule) rule() rule {
	return rule{name: s.name, re: regexp.MustCompile(s.re), literal: []byte(s.literal), group: s.group}
}

// in reports whether the mark's text is in b with its rare byte at an offset.
func (m *mark) in(b []byte, at int) bool {
	from := at - m.offset()
	end := from + len(m.text)
	if from < 0 || end > len(b) {
		return false
	}
	for i := range len(m.text) {
		c := b[from+i]
		if m.fold {
			c = lower(c)
		}
		if m.text[i] != c && m.text[i] != '?' {
			return false
		}
	}
	return (!m.word || !wordBefore(b[:from])) && isToken(b[end:], m.token)
}

// offset returns where in the text the rare byte is.
func (m *mark) offset() int {
	for i := range len(m.text) {
		if m.text[i] == m.rare {
			return i
		}
	}
	return -1
}

// secretKeys are JSON keys whose values are builtin secrets although their values have no
// mark of their own.
var secretKeys = [][]byte{[]byte("aws_secret_access_key"), []byte("secretaccesskey"), []byte("secret_access_key")}

func isSecretKey(key []byte) bool {
	for _, k := range secretKeys {
		if len(k) == len(key) && bytes.EqualFold(k, key) {
			return true
		}
	}
	return false
}

// literalOf returns a text that is part of everything that the expression
// matches; nil when none of use is known.
func literalOf(expr string) []byte {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil
	}
	if l := longest(re.Simplify()); len(l) >= 3 {
		return l
	}
	return nil
}

func longest(re *syntax.Regexp) []byte {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return []byte(string(re.Rune))
		}
	case syntax.OpCapture, syntax.OpPlus:
		return longest(re.Sub[0])
	case syntax.OpConcat:
		var best []byte
		for _, sub := range re.Sub {
			if l := longest(sub); len(l) > len(best) {
				best = l
			}
		}
		return best
	}
	return nil
}
