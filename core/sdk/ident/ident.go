// Package ident reads ids and names, which decoders remember. An id is at most Max bytes of
// JSON; a longer one is replaced by a hash of it, so that a peer cannot make a decoder
// remember a lot, and equal ids stay equal.
package ident

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Max is the length in bytes up to which an id is kept, its quotes included.
const Max = 256

// Of returns the id in v, which then counts as read; "" if v is no string.
func Of(v jsonv.Value) string {
	if v.Is(jsonv.String) {
		v.MarkRead()
	}
	return Peek(v)
}

// First returns the first of the values that is an id. Those after it do not count as read.
func First(values ...jsonv.Value) string {
	for _, v := range values {
		if id := Of(v); id != "" {
			return id
		}
	}
	return ""
}

// Join returns the ids of a list with a separator between them.
func Join(list jsonv.Value, separator string) string {
	var ids []string
	for v := range list.Elems() {
		ids = append(ids, Of(v))
	}
	return strings.Join(ids, separator)
}

// Peek is Of for an id that is only compared: v does not count as read.
func Peek(v jsonv.Value) string {
	if raw := v.Peek(); len(raw) > Max && v.Is(jsonv.String) {
		return Bounded(string(raw))
	}
	return v.PeekStr()
}

// OrNumber is Of for an id that may be a number.
func OrNumber(v jsonv.Value) string {
	if v.Is(jsonv.Number) || v.Is(jsonv.String) {
		v.MarkRead()
	}
	return PeekOrNumber(v)
}

// PeekOrNumber is OrNumber for an id that is only compared.
func PeekOrNumber(v jsonv.Value) string {
	if v.Is(jsonv.Number) {
		raw := v.Peek()
		return string(raw[:min(len(raw), Max)])
	}
	return Peek(v)
}

// Bounded returns s, or a hash of it if it is too long for an id.
func Bounded(s string) string {
	if len(s) > Max {
		return "long:" + msg.HashKey(s)
	}
	return s
}

// Below returns the id that follows a name in a path: 7 after /threads/ in /threads/7/runs.
func Below(path, name string) string {
	_, rest, _ := strings.Cut(path, name)
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		rest = rest[:i]
	}
	return Bounded(rest)
}

// OfFile returns the name of a file without the first of these ends that it has and the rest after that: the number of a rotation, .gz.
func OfFile(path string, ends ...string) string {
	path = text(path)
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	for _, end := range ends {
		if i := strings.Index(name, end); i > 0 {
			return Bounded(name[:i])
		}
	}
	return Bounded(name)
}

// short is the length of an id below which it seems to count something.
const short = 12

// Within returns an id as one that is unique outside of its scope: one that counts in it, with the scope before it.
func Within(scope, id string) string {
	if Counts(id) {
		return scope + "/" + id
	}
	return id
}

// Own is the protocol's id of which Within made one that has the scope before it; empty if it is as it was.
func Own(scope, id string) string {
	if own, cut := strings.CutPrefix(id, scope+"/"); cut {
		return own
	}
	return ""
}

// Counts reports whether an id seems to count the calls of a run (call_0, functions.search:1), so that another
// run has the same. Providers' own ids are longer.
func Counts(id string) bool {
	return id != "" && (len(id) < short || strings.ContainsAny(id, ".:"))
}

// Is reports whether v is the id s. It counts as read if it is.
func Is(v jsonv.Value, s string) bool {
	return v.Equal(s) || len(v.Peek()) > Max && Peek(v) == s && Of(v) == s
}
