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

func builtin() []rule {
	one := func(name, literal, re string) rule {
		return rule{name: name, re: regexp.MustCompile(re), literal: []byte(literal)}
	}
	inner := func(r rule) rule { r.group = 1; return r }
	return []rule{
		one("private_key", "PRIVATE KEY-----", `-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`),
		one("jwt", "eyJ", `\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`),
		one("aws_access_key", "A", `\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`),
		inner(one("aws_secret_key", "", `(?i)secret_?access_?key[^A-Za-z0-9/+\n]{1,8}([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|\z)`)),
		one("api_key", "sk-", `\bsk-[A-Za-z0-9_-]{16,}`),
		one("github_token", "_", `\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`),
		one("gitlab_token", "glpat-", `\bglpat-[A-Za-z0-9_-]{16,}`),
		one("slack_token", "xox", `\bxox[a-z]-[A-Za-z0-9-]{16,}`),
		one("google_api_key", "AIza", `\bAIza[A-Za-z0-9_-]{30,}`),
		one("huggingface_token", "hf_", `\bhf_[A-Za-z0-9]{20,}`),
		one("npm_token", "npm_", `\bnpm_[A-Za-z0-9]{30,}`),
		inner(one("url_password", "@", `:(?:\\*/){2}[^/\s:@"'<>\\]*:([^/\s"'<>]+)@`)),
		inner(one("credentials", " ", `(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{16,})`)),
	}
}

// secretKeys are JSON keys whose values are builtin secrets although they look
// like nothing.
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
