package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/frame/fixture"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

func newDecode() *cobra.Command {
	var o decodeOptions
	c := &cobra.Command{
		Use:   "decode --format FORMAT [--transport sse|ws|jsonl|json|frames|aws] FILE... | -",
		Short: "Decode recorded traffic to normalized messages",
		Long: `Decode recorded traffic and print one JSON object per message, with the columns
of the table messages as keys, on standard output. Records that cannot be decoded go
to standard error, one JSON object each, and the exit status is 0: they are accounted
for. Files are read in the order of the arguments: name parents before children.`,
		Example: `  earshot decode --format claude-code ~/.claude/projects/x/0801e1da.jsonl
  earshot decode --format letta --transport sse - < stream.txt
  earshot decode --format legion --spans messages.jsonl`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	c.Flags().StringVar(&o.format, "format", "", "`FORMAT` of the traffic (required)")
	c.Flags().StringVar(&o.transport, "transport", "", "how it was recorded: sse, ws, jsonl, json, frames or aws, the binary event stream of Bedrock (default: by the file's ending, or json for an indented document)")
	c.Flags().StringVar(&o.options, "options", "", "the decoder's options, a `JSON` object")
	c.Flags().StringVar(&o.source, "source", "", "`NAME` of the source that stored it, for the same ids where a format has none for a conversation")
	c.Flags().BoolVar(&o.spans, "spans", false, "print the spans instead of the messages")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(decoders().Names, cobra.ShellCompDirectiveNoFileComp))
	o.file.add(c)
	return c
}

type decodeOptions struct {
	file                               configFile
	format, transport, options, source string
	spans                              bool
}

func (o *decodeOptions) run(c *cobra.Command, args []string) error {
	if o.format == "" {
		return usageError{fmt.Errorf("--format is required: one of %s", strings.Join(decoders().Names, " "))}
	}
	cfg, err := o.file.load(true)
	if err != nil {
		return err
	}
	if err := decoders().Has(cfg, o.format); err != nil {
		return usageError{err}
	}
	inputs := make([]app.Input, 0, len(args))
	for _, path := range args {
		in, closeFile, err := o.open(path, c.InOrStdin())
		if err != nil {
			return err
		}
		defer closeFile()
		inputs = append(inputs, in)
	}
	out := bufio.NewWriterSize(jsonOutput(c.OutOrStdout()), 64<<10)
	problems := bufio.NewWriter(jsonOutput(c.ErrOrStderr()))
	w := decodeWriter{out: out, problems: problems}
	if len(inputs) > 1 { // which may have a message in a poorer form once more
		w.done = make(map[msg.ID]struct{})
	}
	d := app.Decoded{Problem: w.problem, Message: w.message}
	var spans []msg.Span
	if o.spans {
		d.Message = func(*msg.Message) error { return nil }
		d.Span = func(s *msg.Span) { spans = append(spans, *s) }
	}
	err = app.DecodeStreams(c.Context(), decoders(), cfg, o.format, o.options, inputs, d)
	if err == nil && o.spans {
		err = writeSpans(out, cfg.Exporters.Semconv, spans)
	}
	return errors.Join(err, w.rest(), w.err, out.Flush(), problems.Flush())
}

// open opens a recording.
func (o *decodeOptions) open(path string, stdin io.Reader) (app.Input, func(), error) {
	in := app.Input{Origin: path, Source: o.source, Anchor: time.Now().UnixNano()}
	if _, err := fixture.ParseTransport(o.transport); o.transport != "" && err != nil {
		return in, nil, usageError{err}
	}
	if path == "-" {
		in.Open = func([]string) (app.Frames, error) {
			return fixture.NewReader(stdin, cmp.Or(fixture.Transport(o.transport), fixture.JSONL))
		}
		return in, func() {}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return in, nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s: is a directory", path)
	}
	if err != nil {
		f.Close()
		return in, nil, err
	}
	in.Anchor = info.ModTime().UnixNano()
	in.Open = func(documents []string) (app.Frames, error) {
		r := bufio.NewReader(f)
		t := fixture.Transport(o.transport)
		if t == "" {
			head, _ := r.Peek(r.Size()) // the reader has the error as well
			if t, err = app.FileTransport(path, head, documents); err != nil {
				return nil, usageError{fmt.Errorf("%w; or name the transport of the recording with --transport", err)}
			}
		}
		return fixture.NewReader(r, t)
	}
	return in, func() { f.Close() }, nil
}

// decodeWriter writes each message once: a message that is not complete is held until a
// later version arrives, or the end.
type decodeWriter struct {
	out, problems *bufio.Writer
	buf           []byte
	held          map[string]int      // where the message of an id is in lines
	lines         [][]byte            // nil: a complete version was written
	done          map[msg.ID]struct{} // of which one was written; nil when that need not be known
	err           error
}

func (w *decodeWriter) message(m *msg.Message) error {
	if _, ok := w.done[m.Host.ID]; ok && m.Complete < msg.Complete {
		return nil
	}
	row := m.Row()
	var err error
	if w.buf, err = row.AppendJSON(w.buf[:0]); err != nil {
		return err
	}
	w.buf = append(w.buf, '\n')
	at, held := w.held[row.MessageID]
	switch {
	case m.Complete == msg.Complete:
		if w.done != nil {
			w.done[m.Host.ID] = struct{}{}
		}
		if held {
			w.lines[at] = nil
			delete(w.held, row.MessageID)
		}
		_, err = w.out.Write(w.buf)
	case held:
		w.lines[at] = bytes.Clone(w.buf)
	default:
		if w.held == nil {
			w.held = make(map[string]int)
		}
		w.held[row.MessageID] = len(w.lines)
		w.lines = append(w.lines, bytes.Clone(w.buf))
	}
	return err
}

// rest writes the messages still held.
func (w *decodeWriter) rest() error {
	for _, line := range w.lines {
		if _, err := w.out.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// payloadLimit is how much of a frame a problem shows.
const payloadLimit = 512

func (w *decodeWriter) problem(origin string, offset int64, p msg.Problem, data []byte) {
	line := struct {
		Problem string `json:"problem"`
		Detail  string `json:"detail,omitempty"`
		Origin  string `json:"origin"`
		Offset  int64  `json:"offset"`
		Bytes   int    `json:"bytes"`
		Payload string `json:"payload,omitempty"`
		Base64  string `json:"payload_base64,omitempty"`
	}{Problem: p.Reason, Detail: p.Detail, Origin: origin, Offset: offset, Bytes: len(data)}
	if head := data[:min(len(data), payloadLimit)]; utf8.Valid(head) {
		line.Payload = string(head)
	} else {
		line.Base64 = base64.StdEncoding.EncodeToString(head)
	}
	if err := json.NewEncoder(w.problems).Encode(line); err != nil && w.err == nil {
		w.err = err
	}
}

// writeSpans writes spans as JSON lines, in the order of their starts: the last
// version of each.
func writeSpans(w io.Writer, convention string, spans []msg.Span) error {
	p, err := semconv.New(convention)
	if err != nil {
		return err
	}
	last := make(map[string]int, len(spans))
	for i := range spans {
		id := spans[i].TraceID.String() + spans[i].ID.String()
		if j, ok := last[id]; !ok || spans[i].Ver >= spans[j].Ver {
			last[id] = i
		}
	}
	var order []int
	for _, i := range last {
		if !spans[i].Tombstone {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		if d := spans[a].Start - spans[b].Start; d != 0 {
			return int(min(max(d, -1), 1))
		}
		return strings.Compare(spans[a].ID.String(), spans[b].ID.String())
	})
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, i := range order {
		if err := enc.Encode(spanOf(p, &spans[i])); err != nil {
			return err
		}
	}
	return nil
}

// span is how a span is printed.
type span struct {
	TraceID    string            `json:"trace_id"`
	SpanID     string            `json:"span_id"`
	Parent     string            `json:"parent_span_id,omitempty"`
	Name       string            `json:"name"`
	Kind       string            `json:"kind"`
	Start      string            `json:"start"`
	End        string            `json:"end"`
	Duration   string            `json:"duration"`
	Status     string            `json:"status,omitempty"`
	Message    string            `json:"status_message,omitempty"`
	Attributes map[string]string `json:"attributes"`
	Events     []spanEvent       `json:"events,omitempty"`
	Links      []spanLink        `json:"links,omitempty"`
}

type spanEvent struct {
	Time       string            `json:"time"`
	Name       string            `json:"name"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

type spanLink struct {
	TraceID    string            `json:"trace_id"`
	SpanID     string            `json:"span_id"`
	TraceState string            `json:"trace_state,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

func attributesOf(attrs []msg.Attr) map[string]string {
	if len(attrs) == 0 {
		return nil
	}
	out := make(map[string]string, len(attrs))
	for _, a := range attrs {
		out[a.Key] = a.Value
	}
	return out
}

func spanOf(p *semconv.Profile, s *msg.Span) span {
	stamp := func(ns int64) string { return time.Unix(0, ns).UTC().Format(msg.TimeFormat) }
	out := span{
		TraceID: s.TraceID.String(), SpanID: s.ID.String(), Name: p.Name(s), Kind: p.Kind(s).String(),
		Start: stamp(s.Start), End: stamp(s.End), Duration: inspect.Span(time.Duration(s.End - s.Start)), Attributes: make(map[string]string),
	}
	if !s.Parent.IsZero() {
		out.Parent = s.Parent.String()
	}
	code, message := p.Status(s)
	out.Status, out.Message = code.String(), message
	p.Attributes(s, func(key string, v semconv.Value) { out.Attributes[key] = string(v.AppendText(nil)) })
	for i := range s.Events {
		e := &s.Events[i]
		out.Events = append(out.Events, spanEvent{stamp(e.Time), p.EventName(e), attributesOf(e.Attrs)})
	}
	for i := range s.Links {
		l := &s.Links[i]
		out.Links = append(out.Links, spanLink{l.TraceID.String(), l.SpanID.String(), l.State, attributesOf(l.Attrs)})
	}
	return out
}
