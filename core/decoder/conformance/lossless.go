package conformance

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"reflect"
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

// minText is the length, in characters, from which a string must not be lost.
const minText = 16

// lossless is C14. Each string of the input is in the output, in a bad frame, or at a path
// that leaves-out.json names.
func lossless(ctx context.Context, r *runner) error {
	if r.suite.LeavesOut == nil {
		return skipped("there is no leaves-out.json, the list of all fields that the decoder leaves out")
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
	return &violation{"D7", fmt.Sprintf("%d texts are in no message, in no problem, and not in leaves-out.json", n), strings.Join(lost, "\n")}
}

// lostTexts returns the texts of the case that are not in the output.
func (r *runner) lostTexts(ctx context.Context) (lost []string, err error) {
	bad, leaves := badIndexes(r.base), r.suite.LeavesOut.In(r.c.Name)
	output := r.base.texts()
	for i := range r.c.Frames {
		if bad[i] {
			continue
		}
		for _, s := range jsonStrings(r.c.Frames[i].Data) {
			if utf8.RuneCountInString(s.text) < minText || leaves.HasText(s.path, s.text) || output.covers(s) {
				continue
			}
			known, err := r.understands(ctx, i, s)
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

// understands reports whether a text is a word or a time of the format, which the decoder
// need not repeat: it keeps another text in the same place.
func (r *runner) understands(ctx context.Context, i int, s jsonString) (bool, error) {
	const longest = 64
	if _, _, time := when.Parse(s.text); !time && (len(s.text) > longest || strings.ContainsAny(s.text, " \n<>{}")) {
		return false, nil
	}
	const mark = "Earshot mark in the place of a word"
	data := r.c.Frames[i].Data
	frames := slices.Clone(r.c.Frames)
	frames[i].Data = slices.Concat(data[:s.from], []byte(mark), data[s.from+len(s.raw):])
	got, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, playOptions{batch: r.cautiousSizes()})
	if err != nil {
		return false, withRule("D7", err)
	}
	return badIndexes(got)[i] || got.texts().contain(mark), nil
}

// maxMarks is the largest number of marks in a case.
const maxMarks = 400

// lostMarks replaces values by a unique mark, one at a time: as a string, in an object,
// in a list, and as an unknown member. It returns the marks that are not in the output.
func (r *runner) lostMarks(ctx context.Context, st decoder.Stream, in []frame.Frame) (lost []string, err error) {
	all, leaves := targets(in), r.suite.LeavesOut.In(r.c.Name)
	r.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var snapshots [][]byte // after each frame
	if r.suite.Subject.Describe().Snapshots && len(all) > 0 {
		unchanged, err := r.play(ctx, r.suite.Subject, st, in, playOptions{snapshots: true})
		if err != nil {
			return nil, withRule("D7", err)
		}
		snapshots = unchanged.snapshots
	}
	for n, s := range all[:min(len(all), r.times(maxMarks))] {
		mark := fmt.Sprintf("Earshot mark %04d/%s", n, msg.HashKey(s.where)[:6])
		change, path, data := s.marked(in[s.frame].Data, mark)
		if leaves.Has(path) {
			continue
		}
		frames, at := slices.Clone(in), s.frame
		frames[at].Data = data
		var from []byte
		if snapshots != nil && at > 0 {
			frames, at, from = frames[at:], 0, snapshots[at-1]
		}
		kept, err := r.keeps(ctx, st, from, frames, at, mark)
		if err != nil {
			return nil, withRule("D7", err)
		}
		if !kept {
			lost = append(lost, fmt.Sprintf("frame %d, /%s, %s", s.frame, strings.Join(path, "/"), change))
		}
	}
	return lost, nil
}

// keeps reports whether the mark in frame i is in a message, or the frame has a problem. The frames after it are decoded only
// if the mark is not in the messages until then: most marks are in those of their own frame.
func (r *runner) keeps(ctx context.Context, st decoder.Stream, from []byte, frames []frame.Frame, i int, mark string) (bool, error) {
	stream, err := r.open(ctx, r.suite.Subject, st, from)
	if err != nil {
		return false, err
	}
	defer stream.Close()
	o := playOptions{batch: r.cautiousSizes()}
	begin := o.batches(frames[:i+1])
	for n, part := range [][]Batch{begin[:len(begin)-1], o.batches(frames[i+1:])} {
		answers, err := r.decodeAll(ctx, stream, part)
		if err != nil {
			return false, err
		}
		var got run
		for _, a := range answers {
			got.add(a)
		}
		if n == 0 && badIndexes(&got)[i] || got.texts().contain(mark) {
			return true, nil
		}
	}
	return false, nil
}

// badIndexes returns the frames with a problem: the host keeps them whole.
func badIndexes(r *run) map[int]bool {
	bad := make(map[int]bool)
	for i := range r.problems {
		bad[int(r.problems[i].Frame)] = true
	}
	return bad
}

// target is a value of a frame that C14 marks.
type target struct {
	frame    int
	path     []string
	where    string // path, and the types of the objects on it
	from, to int
	marking  marking
}

// marking is a way to mark a value.
type marking uint8

const (
	asString marking = iota
	asObject
	asList
	asMember // a new member of an object
)

// targets returns the values of frames that differ in their path or in the types of the
// objects around them, once for each way to mark them.
func targets(frames []frame.Frame) []target {
	var out []target
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
						out = append(out, target{i, slices.Clone(path), where, at, at + len(raw), w})
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

// marked returns the data with the mark at the target.
func (s *target) marked(data []byte, mark string) (change string, path []string, out []byte) {
	const extra = "earshot_field"
	if s.marking == asMember {
		inner, _ := addMember(data[s.from:s.to], `"`+extra+`":"`+mark+`"`, false)
		return "a new member", append(slices.Clone(s.path), extra), slices.Concat(data[:s.from], inner, data[s.to:])
	}
	value := `"` + mark + `"`
	change = "a string in its place"
	switch s.marking {
	case asObject:
		change, value = "an object in its place", `{"`+extra+`":{"`+extra+`":"`+mark+`"}}`
	case asList:
		change, value = "a list in its place", `[{"type":"`+extra+`","`+extra+`":"`+mark+`"}]`
	}
	return change, s.path, slices.Concat(data[:s.from], []byte(value), data[s.to:])
}

// jsonString is a string of a document.
type jsonString struct {
	path []string
	text string
	raw  string // as in the document, with escapes and without quotes
	from int    // the offset of raw
}

// jsonStrings returns the strings of a document.
func jsonStrings(data []byte) []jsonString {
	var out []jsonString
	var walk func(v jsonv.Value, path []string)
	walk = func(v jsonv.Value, path []string) {
		if v.Is(jsonv.String) {
			raw := v.Peek()
			at, _ := frame.Offset(data, raw)
			out = append(out, jsonString{slices.Clone(path), v.PeekStr(), string(raw[1 : len(raw)-1]), at + 1})
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

// texts has all strings of the messages of a run.
type texts string

func (r *run) texts() texts {
	var b strings.Builder
	for _, list := range [][]msg.Message{r.messages, r.open} {
		for i := range list {
			writeTexts(&b, reflect.ValueOf(&list[i]).Elem())
		}
	}
	return texts(b.String())
}

// writeTexts writes the strings of a value, each with a zero byte behind it. Those of the host are not the decoder's.
func writeTexts(b *strings.Builder, v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *msg.Host:
	case *msg.Text:
		b.WriteString(x.String() + "\x00")
	case *string:
		b.WriteString(*x + "\x00")
	default:
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				writeTexts(b, v.Field(i))
			}
		case reflect.Slice:
			for i := range v.Len() {
				writeTexts(b, v.Index(i))
			}
		}
	}
}

func (t texts) contain(s string) bool { return strings.Contains(string(t), s) }

// covers reports whether the texts contain a string: decoded or as raw JSON; the content of
// a string that is JSON or Base64 itself; the hash of its decoded bytes; or each of its
// lines and each text between its tags, when the decoder split it.
func (t texts) covers(s jsonString) bool {
	text := strings.TrimSpace(s.text)
	if t.contain(text) || t.contain(s.raw) || utf8.RuneCountInString(text) < minText {
		return true
	}
	if inner := jsonStrings([]byte(text)); len(inner) > 0 && !parse([]byte(text)).Is(jsonv.String) {
		return !slices.ContainsFunc(inner, func(s jsonString) bool { return !t.covers(s) })
	}
	encoded := text
	if strings.HasPrefix(text, "data:") {
		_, encoded, _ = strings.Cut(text, ",")
	}
	if b, err := base64.StdEncoding.DecodeString(encoded); err == nil {
		sum := sha256.Sum256(b)
		return t.contain(hex.EncodeToString(sum[:])) || utf8.Valid(b) && t.covers(jsonString{text: string(b), raw: string(b)})
	}
	parts := separators.Split(text, -1)
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(p string) bool { return !t.covers(jsonString{text: p, raw: p}) })
}

// separators splits a text into its lines and the texts between its tags.
var separators = regexp.MustCompile(`\n|</?[A-Za-z][A-Za-z0-9_-]*>`)
