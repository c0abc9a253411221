package conformance

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/when"
)

// minText is how many characters a string has at least that must not be lost.
const minText = 16

// lossless is C14. What came in comes out, or its frame is a bad one, or leaves-out.json
// names its path.
func lossless(ctx context.Context, r *runner) error {
	if r.suite.LeavesOut == nil {
		return skipped("there is no leaves-out.json, by which the decoder says that it leaves out nothing else")
	}
	lost, err := r.lostTexts(ctx)
	if err != nil {
		return err
	}
	for _, form := range []struct {
		stream decoder.Stream
		frames []frame.Frame
	}{{r.c.Stream, r.c.Frames}, {r.c.ReloadStream, r.c.Reload}} {
		more, err := r.lostMarks(ctx, form.stream, form.frames)
		if err != nil {
			return err
		}
		lost = append(lost, more...)
	}
	n := len(lost)
	if n == 0 {
		return nil
	}
	if n > maxDiffs {
		lost = append(lost[:maxDiffs], fmt.Sprintf("and %d more", n-maxDiffs))
	}
	return &broken{"D7", fmt.Sprintf("%d texts are in no message, in no problem, and not in leaves-out.json", n), strings.Join(lost, "\n")}
}

// lostTexts looks for every text of the case.
func (r *runner) lostTexts(ctx context.Context) (lost []string, err error) {
	bad, leaves := badOnes(r.base), r.suite.LeavesOut.In(r.c.Name)
	there := r.base.texts()
	for i := range r.c.Frames {
		if bad[i] {
			continue
		}
		for _, s := range strs(r.c.Frames[i].Data) {
			if utf8.RuneCountInString(s.text) < minText || leaves.HasText(s.path, s.text) || there.have(s) {
				continue
			}
			known, err := r.knows(ctx, i, s)
			if err != nil {
				return nil, err
			}
			if !known {
				lost = append(lost, fmt.Sprintf("frame %d, /%s: %s", i, strings.Join(s.path, "/"), cut(s.text)))
			}
		}
	}
	return lost, nil
}

// knows reports whether a text is a word or a time of the format, which the decoder has
// understood and need not repeat: another one in its place is kept.
func (r *runner) knows(ctx context.Context, i int, s str) (bool, error) {
	const longest = 64
	if _, _, time := when.Parse(s.text); !time && (len(s.text) > longest || strings.ContainsAny(s.text, " \n<>{}")) {
		return false, nil
	}
	const mark = "Earshot mark in the place of a word"
	data := r.c.Frames[i].Data
	frames := slices.Clone(r.c.Frames)
	frames[i].Data = slices.Concat(data[:s.from], []byte(mark), data[s.from+len(s.raw):])
	got, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, how{batch: r.pace()})
	if err != nil {
		return false, otherRule("D7", err)
	}
	return badOnes(got)[i] || got.texts().contain(mark), nil
}

// maxMarks is how often a case is marked at most.
const maxMarks = 400

// lostMarks puts a text of which there is no other in the place of values, one at a time:
// as it is, in an object, in a list, and as a member that nobody knows.
func (r *runner) lostMarks(ctx context.Context, st decoder.Stream, in []frame.Frame) (lost []string, err error) {
	all, leaves := spots(in), r.suite.LeavesOut.In(r.c.Name)
	r.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for n, s := range all[:min(len(all), maxMarks)] {
		mark := fmt.Sprintf("Earshot mark %04d/%s", n, msg.HashKey(s.where)[:6])
		what, path, data := s.marked(in[s.frame].Data, mark)
		if leaves.Has(path) {
			continue
		}
		frames := slices.Clone(in)
		frames[s.frame].Data = data
		got, err := r.play(ctx, r.suite.Subject, st, frames, how{batch: r.pace()})
		if err != nil {
			return nil, otherRule("D7", err)
		}
		if !badOnes(got)[s.frame] && !got.texts().contain(mark) {
			lost = append(lost, fmt.Sprintf("frame %d, /%s, %s", s.frame, strings.Join(path, "/"), what))
		}
	}
	return lost, nil
}

// badOnes are the frames that are kept whole because they are bad.
func badOnes(r *run) map[int]bool {
	bad := make(map[int]bool)
	for i := range r.problems {
		bad[int(r.problems[i].Frame)] = true
	}
	return bad
}

// spot is a value of a frame.
type spot struct {
	frame    int
	path     []string
	where    string // path, and of what types
	from, to int
	way      way
}

// way is how a value is marked.
type way uint8

const (
	asString way = iota
	asObject
	asList
	asMember // of the object that it is
)

// spots returns the values of frames that differ in their path and in the types of what
// they are in, once for each way to mark them.
func spots(frames []frame.Frame) []spot {
	var out []spot
	seen := make(map[string]bool)
	for i := range frames {
		data := frames[i].Data
		var walk func(v jsonv.Value, path []string, types string)
		walk = func(v jsonv.Value, path []string, types string) {
			for _, name := range [...]string{"type", "kind", "subtype", "event", "role", "message_type", "action"} {
				if s := v.Get(name).PeekStr(); s != "" && len(s) < 40 {
					types += " " + s
				}
			}
			where := strings.Join(path, "/") + types
			if !seen[where] {
				seen[where] = true
				raw := v.Peek()
				at, _ := frame.Offset(data, raw)
				for w := asString; w <= asMember; w++ {
					if w == asMember && v.Is(jsonv.Object) || w != asMember && len(path) > 0 {
						out = append(out, spot{i, slices.Clone(path), where, at, at + len(raw), w})
					}
				}
			}
			for k, m := range v.Members() {
				walk(m, append(path[:len(path):len(path)], k.String()), types)
			}
			for e := range v.Elems() {
				walk(e, append(path[:len(path):len(path)], "*"), types)
			}
		}
		walk(parse(data), nil, "")
	}
	return out
}

// marked puts the mark at the spot.
func (s *spot) marked(data []byte, mark string) (what string, path []string, out []byte) {
	const extra = "earshot_field"
	if s.way == asMember {
		inner, _ := addMember(data[s.from:s.to], `"`+extra+`":"`+mark+`"`, false)
		return "a new member", append(slices.Clone(s.path), extra), slices.Concat(data[:s.from], inner, data[s.to:])
	}
	value := `"` + mark + `"`
	what = "a string in its place"
	switch s.way {
	case asObject:
		what, value = "an object in its place", `{"`+extra+`":{"`+extra+`":"`+mark+`"}}`
	case asList:
		what, value = "a list in its place", `[{"type":"`+extra+`","`+extra+`":"`+mark+`"}]`
	}
	return what, s.path, slices.Concat(data[:s.from], []byte(value), data[s.to:])
}

// str is a string of a document.
type str struct {
	path []string
	text string
	raw  string // as it stands in the document, without the quotes
	from int    // where that is
}

// strs returns the strings of a document.
func strs(data []byte) []str {
	var out []str
	var walk func(v jsonv.Value, path []string)
	walk = func(v jsonv.Value, path []string) {
		if v.Is(jsonv.String) {
			raw := v.Peek()
			at, _ := frame.Offset(data, raw)
			out = append(out, str{slices.Clone(path), v.PeekStr(), string(raw[1 : len(raw)-1]), at + 1})
		}
		for k, m := range v.Members() {
			walk(m, append(path[:len(path):len(path)], k.String()))
		}
		for e := range v.Elems() {
			walk(e, append(path[:len(path):len(path)], "*"))
		}
	}
	walk(parse(data), nil)
	return out
}

// texts is everything that a run says.
type texts string

func (r *run) texts() texts {
	var b strings.Builder
	for _, list := range [][]msg.Message{r.messages, r.open} {
		for i := range list {
			m := &list[i]
			for _, s := range []string{
				m.Key, m.ParentKey, m.Session, m.Run, m.ParentRun, m.ParentCall, m.Agent.ID, m.Agent.Name, m.Content.String(),
				m.Tool.CallID, m.Tool.ProtocolID, m.Tool.Name, m.Tool.Arguments.String(), m.Tool.Server, m.Tool.ErrorType,
				m.Delegation.To, m.Delegation.Task.String(), m.Delegation.ChildRun, m.Delegation.CorrelationID, m.Delegation.CorrelationPrompt,
				m.Model, m.Provider, m.ResponseID, m.FinishReason,
			} {
				b.WriteString(s)
				b.WriteByte(0)
			}
			for _, a := range m.Attrs {
				b.WriteString(a.Key + "\x00" + a.Value + "\x00")
			}
			for _, a := range m.Attachments {
				b.WriteString(a.Name + "\x00" + a.URL + "\x00" + a.MediaType + "\x00" + a.SHA256 + "\x00")
			}
		}
	}
	return texts(b.String())
}

func (t texts) contain(s string) bool { return strings.Contains(string(t), s) }

// have reports whether a string is there: as it is; as JSON; what is in it,
// where it is JSON or Base64 itself; the hash of the bytes that it stands for; or, where
// it was taken apart, its lines and what stands between its tags.
func (t texts) have(s str) bool {
	text := strings.TrimSpace(s.text)
	if t.contain(text) || t.contain(s.raw) || utf8.RuneCountInString(text) < minText {
		return true
	}
	if inner := strs([]byte(text)); len(inner) > 0 && !parse([]byte(text)).Is(jsonv.String) {
		return !slices.ContainsFunc(inner, func(s str) bool { return !t.have(s) })
	}
	encoded := text
	if strings.HasPrefix(text, "data:") {
		_, encoded, _ = strings.Cut(text, ",")
	}
	if b, err := base64.StdEncoding.DecodeString(encoded); err == nil {
		sum := sha256.Sum256(b)
		return t.contain(hex.EncodeToString(sum[:])) || utf8.Valid(b) && t.have(str{text: string(b), raw: string(b)})
	}
	parts := seams.Split(text, -1)
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(p string) bool { return !t.have(str{text: p, raw: p}) })
}

// seams is where a text that has parts is taken apart.
var seams = regexp.MustCompile(`\n|</?[A-Za-z][A-Za-z0-9_-]*>`)
