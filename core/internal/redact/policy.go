package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// Action decides how personal data is replaced.
type Action string

// The actions.
const (
	Keep  Action = "keep"
	Drop  Action = "drop"  // nothing is left of it
	Mask  Action = "mask"  // [personal:kind]
	Token Action = "token" // [personal:kind:0123456789abcdef], the same for the same value
)

// Content is how much of the content of messages is kept.
type Content string

// The contents.
const (
	Full     Content = "full"
	Metadata Content = "metadata" // lengths and hashes
	None     Content = "none"
)

// Policy decides which parts of a source's messages are kept.
type Policy struct {
	Personal Action   // Keep when empty
	Kinds    []string // of personal data; empty: all
	Words    []string // more personal data: words, in any letter case
	Patterns []Pattern
	Content  Content // Full when empty
	Salt     []byte  // key of tokens and hashes
}

// Filter redacts the messages of a source and applies its policy.
type Filter struct {
	r        *Redactor
	policy   Policy
	personal []personalKind
	count    func(string, int)
}

// Filter returns the filter of a policy. A nil redactor's looks for no secrets.
func (r *Redactor) Filter(p Policy, count func(rule string, n int)) (*Filter, error) {
	f := &Filter{r: r, policy: p, count: count}
	if f.policy.Personal == "" {
		f.policy.Personal = Keep
	}
	if f.policy.Content == "" {
		f.policy.Content = Full
	}
	if p.Personal == Token && len(p.Salt) == 0 {
		return nil, errors.New("redact: tokens need a key")
	}
	if f.policy.Personal == Keep {
		return f, nil
	}
	for _, w := range p.Words {
		re, err := regexp.Compile(`(?i)\b` + regexp.QuoteMeta(w) + `\b`)
		if err != nil || w == "" {
			return nil, fmt.Errorf("redact: word %q: not a word", w)
		}
		f.personal = append(f.personal, personalKind{name: "word", re: re})
	}
	for _, x := range p.Patterns {
		re, err := regexp.Compile(x.Regex)
		if err != nil {
			return nil, fmt.Errorf("redact: pattern %s: %w", x.Name, err)
		}
		f.personal = append(f.personal, personalKind{name: x.Name, re: re})
	}
	for _, k := range personalKinds() {
		if len(p.Kinds) == 0 || slices.Contains(p.Kinds, k.name) {
			f.personal = append(f.personal, k)
		}
	}
	return f, nil
}

// Message applies the policy to a message whose secrets are gone then. Ids and keys stay. clean is
// as for Redactor.Message.
func (f *Filter) Message(m *msg.Message, clean []byte) {
	f.r.Message(m, clean)
	texts := []*msg.Text{&m.Content, &m.Tool.Arguments, &m.Delegation.Task}
	if f.policy.Content != Full {
		for _, t := range texts {
			f.withhold(t)
		}
		m.Attrs = slices.DeleteFunc(m.Attrs, func(a msg.Attr) bool { return a.Key == msg.AttrUnknownFields || len(a.Value) > longestAttr })
		for i := range m.Attachments {
			m.Attachments[i].Name, m.Attachments[i].URL = "", ""
		}
	}
	if len(f.personal) == 0 {
		return
	}
	if f.policy.Content == Full {
		for _, t := range texts {
			text := t.String()
			if out := f.text(text); out != text {
				*t = msg.Plain(out)
			}
		}
	}
	for _, s := range []*string{&m.Agent.Name, &m.Delegation.To, &m.Tool.ErrorType} {
		*s = f.text(*s)
	}
	for i := range m.Attrs {
		m.Attrs[i].Value = f.text(m.Attrs[i].Value)
	}
	for i := range m.Attachments {
		a := &m.Attachments[i]
		a.Name, a.URL = f.text(a.Name), f.text(a.URL)
	}
}

// String applies the policy to words about the input.
func (f *Filter) String(s string) string { return f.text(f.r.String(s)) }

// Payload applies the policy to a frame that could not be decoded.
func (f *Filter) Payload(b []byte) []byte {
	switch {
	case len(b) == 0:
		return b
	case f.policy.Content == Metadata:
		return []byte(f.summary(b))
	case f.policy.Content == None:
		return nil
	case len(f.personal) == 0:
		return b
	}
	return []byte(f.text(string(b)))
}

// longestAttr is how long an attribute may be that is no content.
const longestAttr = 64

func (f *Filter) withhold(t *msg.Text) {
	switch {
	case t.IsZero():
	case f.policy.Content == None:
		*t = msg.Text{}
	default:
		*t = msg.Plain(f.summary(t.Append(nil)))
	}
}

// summary is the length of a content and its hash, keyed when there is a key.
func (f *Filter) summary(b []byte) string {
	return fmt.Sprintf("[content:%d:%s]", len(b), hex.EncodeToString(f.sum(b)[:16]))
}

func (f *Filter) sum(b []byte) []byte {
	h := sha256.New()
	if len(f.policy.Salt) > 0 {
		h = hmac.New(sha256.New, f.policy.Salt)
	}
	h.Write(b)
	return h.Sum(nil)
}

// text replaces the personal data in a text.
func (f *Filter) text(s string) string {
	if s == "" {
		return s
	}
	b := []byte(s)
	var all []match
	for i := range f.personal {
		k := &f.personal[i]
		for _, m := range k.find(b) {
			if m[0] < m[1] && !inRedacted(b, m[0]) && (k.check == nil || k.check(b[m[0]:m[1]])) {
				all = append(all, match{m[0], m[1], i, k.name})
			}
		}
	}
	if len(all) == 0 {
		return s
	}
	var out strings.Builder
	kept := 0
	for _, m := range merged(all) {
		out.Write(b[kept:m.from])
		kept = m.to
		f.count("personal_"+m.name, 1)
		switch f.policy.Personal {
		case Mask:
			out.WriteString("[personal:" + m.name + "]")
		case Token:
			out.WriteString("[personal:" + m.name + ":" + hex.EncodeToString(f.sum(b[m.from:m.to])[:8]) + "]")
		}
	}
	out.Write(b[kept:])
	return out.String()
}

// inRedacted reports whether a place is in the replacement of a secret.
func inRedacted(b []byte, at int) bool {
	from := bytes.LastIndexByte(b[max(0, at-96):at], '[')
	if from < 0 {
		return false
	}
	from += max(0, at-96)
	return (bytes.HasPrefix(b[from:], []byte("[redacted:")) || bytes.HasPrefix(b[from:], []byte("[content:"))) && !bytes.Contains(b[from:at], []byte("]"))
}
