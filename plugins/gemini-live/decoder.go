// Package geminilive decodes sessions of Gemini's Live API (BidiGenerateContent of Google AI and
// of Vertex AI): the messages of a WebSocket, in both directions, as a tap records them.
//
// Facts of the format that are easy to get wrong:
//
//   - The server sends its JSON as binary messages. A member names the kind of a message, so
//     that the direction need not be known; usageMetadata is beside it, or alone after it.
//   - Nothing has an id but calls. The session is named by its first words, or by the handle
//     that it goes on from; that changes with each sessionResumptionUpdate.
//   - The words of a person follow their voice as inputTranscription, whose order to the answer
//     is not fixed. When the person stopped speaking is known to the server alone.
//   - interrupted ends a generation, the turnComplete after it the turn. A text of the client
//     interrupts too.
//   - A call ends a generation, not the turn; a model whose tools are NON_BLOCKING speaks on.
//   - usageMetadata counts a turn, with the whole session as its prompt: not the sum so far.
//     It has responseTokenCount where the other APIs have candidatesTokenCount.
package geminilive

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/gemini"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[state]{
		Info: decoder.Info{
			Name: "gemini-live", Revision: 4, Summary: "Gemini Live API: sessions over a WebSocket, by voice or text.",
			Transports: []frame.Kind{frame.Binary, frame.Text, frame.Line}, Options: json.RawMessage(exchange.Schema), LocalIDs: true,
		},
		LeavesOut: leavesOut,
		State:     1,
		Open:      func(r *record.Current, s *state) record.Reader { return &session{r, s} },
	}.Factory()
}

// The limits of inputs that wait for an answer.
const (
	maxFiles = 256
	maxTypes = 8 // of media
)

// state is the memory of a session.
type state struct {
	X     exchange.Exchange // of the open generation, or the last one
	From  string            `json:",omitempty"` // the field that names the session
	Model string            `json:",omitempty"`
	Setup []byte            `json:",omitempty"` // until the first prompt
	Turns int               `json:",omitempty"`
	Heard int               `json:",omitempty"` // generations of the run
	Said  []byte            `json:",omitempty"` // by the client, since it was answered
	Files []msg.Attachment  `json:",omitempty"` // beside it
	Voice []msg.Attachment  `json:",omitempty"` // of the open generation
	// Broken is the generation that a text of the client broke off, until the server ends its turn.
	Broken *generation `json:",omitempty"`
}

type generation struct{ Run, ID string }

// session decodes the messages of one session.
type session struct {
	*record.Current
	*state
}

// Configure implements record.Configurer.
func (d *session) Configure(options json.RawMessage) (err error) {
	d.X.Provider, d.X.Source = exchange.ProviderAt(d.Origin, "gcp.gen_ai"), d.Source
	d.X.Agent, err = exchange.Options(options)
	return err
}

// In implements record.Reader.
func (d *session) In() (session, run string) { return cmp.Or(d.X.Session, "unknown"), d.X.Run }

// Begin implements record.Framer: words that nothing answers are a prompt at the end.
func (d *session) Begin() bool {
	if d.Frame.Kind != frame.Close {
		return true
	}
	if len(d.Said) > 0 && d.open() {
		d.late()
	} else if len(d.Said) > 0 {
		d.ask()
	}
	return false
}

// Flush implements record.Flusher.
func (d *session) Flush() { d.X.Flush(d.Out) }

// Read implements record.Reader.
func (d *session) Read() {
	v, usage := d.Root, d.Root.First("usageMetadata", "usage_metadata")
	switch name, p := member(v); name {
	case "setup":
		d.setup(p)
	case "setupComplete":
		if id := ident.Of(p.Get("sessionId")); id != "" && d.X.Session == "" {
			d.X.Session, d.From = id, ""
		}
	case "clientContent", "client_content":
		d.client(p)
	case "realtimeInput", "realtime_input":
		d.realtime(p)
	case "toolResponse", "tool_response":
		d.results(p.First("functionResponses", "function_responses"))
	case "serverContent":
		d.server(p, usage)
	case "toolCall":
		d.answer()
		for c := range p.Get("functionCalls").Elems() {
			gemini.Call(&d.X, "0", c, d.Out)
		}
		d.count(usage)
		d.end("toolCall", true)
	case "toolCallCancellation":
		d.cancelled(p.Get("ids"))
	case "sessionResumptionUpdate", "goAway":
		m := d.X.Status(d.Out, name+":"+msg.HashKey(d.X.Session, string(p.First("newHandle", "timeLeft").Peek())), name)
		conversation.Attrs(m, p, "newHandle", "timeLeft")
		p.Get("resumable").Bool()
	case "error":
		class := ident.Of(p.Get("status"))
		if class == "" {
			class = ident.OrNumber(p.Get("code"))
		}
		d.X.Fail(d.Out, class, p.Get("message").Text())
	case "usageMetadata", "usage_metadata":
		d.count(usage)
	case "voiceActivity", "voiceActivityDetectionSignal":
	default:
		d.X.Unknown(d.Out, cmp.Or(name, "none"), v.Raw())
	}
}

// member is the member that makes a message one of its kind: the first known one but the usage, which may be
// beside it.
func member(v jsonv.Value) (name string, p jsonv.Value) {
	for _, name = range [...]string{"serverContent", "realtimeInput", "realtime_input", "toolCall", "toolResponse", "tool_response",
		"clientContent", "client_content", "setup", "setupComplete", "toolCallCancellation", "sessionResumptionUpdate", "goAway",
		"error", "voiceActivity", "voiceActivityDetectionSignal", "usageMetadata", "usage_metadata"} {
		if p = v.Get(name); p.Is(jsonv.Object) {
			return name, p
		}
	}
	return "", p
}

// setup keeps the session's configuration until its first prompt, with which it is emitted: the session has no
// name before.
func (d *session) setup(p jsonv.Value) {
	_, model, ok := strings.Cut(p.Get("model").PeekStr(), "models/")
	if d.Model = ident.Bounded(model); !ok {
		d.Model = ident.Peek(p.Get("model"))
	}
	resumption := p.First("sessionResumption", "session_resumption")
	if handle := ident.Peek(resumption.Get("handle")); handle != "" {
		d.X.Session, d.From = handle, "sessionResumption.handle"
	}
	d.Setup = append([]byte(nil), p.Raw()...)
	p.MarkRead()
}

// name names a session by its first words, unless it has a name.
func (d *session) name(said string) {
	if d.X.Session == "" {
		d.X.Session, d.From = "conversation:"+msg.HashKey(d.Source, d.Model, said), "content"
	}
}

// client decodes turns that the client adds to the conversation. Before a turn of the model they are of an earlier conversation.
//
//	{turns: [content], turnComplete}
func (d *session) client(p jsonv.Value) {
	first, i := 0, 0
	turns := p.Get("turns")
	for c := range jsonv.Each(turns) {
		if i++; c.Get("role").Equal("model") {
			first = i
		}
	}
	i = 0
	for c := range jsonv.Each(turns) {
		if i++; i <= first {
			c.MarkRead()
			continue
		}
		text, files := gemini.Content(c.Get("parts"))
		d.name(text.String())
		d.say(text, "\n")
		d.Files = append(d.Files, files[:min(len(files), max(0, maxFiles-len(d.Files)))]...)
	}
	if p.First("turnComplete", "turn_complete").Bool() && len(d.Said)+len(d.Files) > 0 {
		d.ask()
	}
}

// realtime decodes input that the client streams: voice, pictures, or a text, which is a prompt.
func (d *session) realtime(p jsonv.Value) {
	for _, name := range [...]string{"audio", "video", "mediaChunks", "media_chunks"} {
		for blob := range jsonv.Each(p.Get(name)) {
			d.name(blob.Get("data").PeekStr())
			d.Files = heap(d.Files, blob)
		}
	}
	p.First("audioStreamEnd", "audio_stream_end").Bool()
	if text := p.Get("text"); text.Is(jsonv.String) && !text.Equal("") {
		d.name(text.PeekStr())
		d.say(text.Text(), "\n")
		d.ask()
	}
}

// heap adds a piece of a sound or a film to those of its type, of which the size alone is kept.
func heap(to []msg.Attachment, blob jsonv.Value) []msg.Attachment {
	data, typ := blob.Get("data"), ident.Of(blob.First("mimeType", "mime_type"))
	if !data.Is(jsonv.String) {
		return to
	}
	size := int64(len(bytes.TrimRight(data.Chars(), "=")) * 3 / 4)
	data.MarkRead()
	for i := range to {
		if to[i].SHA256 == "" && (to[i].MediaType == typ || i >= maxTypes) {
			to[i].Size += size
			return to
		}
	}
	return append(to, msg.Attachment{MediaType: typ, Size: size})
}

// say adds words of the client, which wait for an answer of the model.
func (d *session) say(text msg.Text, between string) {
	if len(d.Said) > 0 {
		d.Said = append(d.Said, between...)
	}
	d.Said = conversation.Cut(text.Append(d.Said), conversation.MaxBytes)
}

// open reports whether the model generates.
func (d *session) open() bool { return d.X.ID != "" && !d.X.Over }

// ask begins a run with the words that wait.
func (d *session) ask() {
	if d.open() {
		d.Broken = &generation{d.X.Run, d.X.ID}
		d.end("interrupted", false)
	}
	d.Turns++
	d.Heard = 0
	d.name("")
	said := msg.Plain(string(d.Said))
	ask := exchange.Ask{Session: d.X.Session, From: d.From, Model: d.Model}
	ask.Prompt = "run:" + msg.HashKey(ask.Session, strconv.Itoa(d.Turns), said.String())
	var setup jsonv.Doc
	asked := len(d.Said)+len(d.Files) > 0
	known := asked && d.Setup != nil && setup.Parse(d.Setup) == nil
	if v := setup.Root(); known {
		ident.Of(v.Get("model"))
		ident.Of(v.First("sessionResumption", "session_resumption").Get("handle"))
		system := v.First("systemInstruction", "system_instruction")
		parts := system
		if p := system.Get("parts"); p.Exists() {
			parts = p
		}
		text, _ := gemini.Content(parts)
		ask.Items = exchange.Instruct(nil, text, system)
		config := v.First("generationConfig", "generation_config")
		gemini.Params(&ask, config)
		for way := range config.First("responseModalities", "response_modalities").Elems() {
			if way.Equal("AUDIO") {
				ask.Is(msg.ParamOutputType, "speech")
			}
		}
		gemini.Tools(&ask, v.Get("tools"))
	}
	if asked {
		ask.Items = append(ask.Items, exchange.Item{Who: exchange.Prompt, Text: said, Attachments: d.Files})
	}
	before := len(d.Out.Messages)
	d.X.Request(d.Out, ask)
	if known {
		d.KeepUnread(&setup, before)
		d.Setup = nil
	}
	d.Said, d.Files = nil, nil
}

// late adds words of a run that were written down after its answer began.
func (d *session) late() {
	if len(d.Said) == 0 {
		return
	}
	m := d.X.Message(d.Out, msg.User, "words:"+msg.HashKey(d.X.Run, string(d.Said)))
	m.Role, m.Content, m.Agent = msg.RoleUser, msg.Plain(string(d.Said)), msg.Agent{Kind: msg.KindHuman}
	d.Said = nil
}

// answer begins a generation of the model, unless one is open.
func (d *session) answer() {
	x := &d.X
	if d.open() && x.Stop == "interrupted" { // whose turn the server did not end
		d.end("", false)
	}
	switch {
	case d.open():
		return
	case x.Run == "", x.Over && (!x.Waits || len(d.Said) > 0): // to what was said, or by itself
		d.ask()
	case x.Over: // it does not wait for its tools
		d.X = exchange.Exchange{Session: x.Session, Run: x.Run, Agent: x.Agent, Provider: x.Provider, Source: x.Source, Last: x.Last}
	}
	d.Heard++
	x.Begin("response:"+msg.HashKey(x.Run, strconv.Itoa(d.Heard)), d.Model)
}

// server decodes content that the model generates.
//
//	{modelTurn: content, inputTranscription, outputTranscription, generationComplete, interrupted, turnComplete, …}
func (d *session) server(p, usage jsonv.Value) {
	x := &d.X
	if heard := p.Path("inputTranscription", "text"); heard.Is(jsonv.String) && !heard.Equal("") {
		d.name(heard.PeekStr())
		d.say(heard.Text(), "")
	}
	parts, spoken := p.Path("modelTurn", "parts"), p.Path("outputTranscription", "text")
	if parts.Len() > 0 || spoken.Is(jsonv.String) && !spoken.Equal("") {
		d.answer()
	}
	for part := range parts.Elems() {
		if blob := part.Get("inlineData"); strings.HasPrefix(blob.Get("mimeType").PeekStr(), "audio/") {
			x.First(d.Out)
			d.Voice = heap(d.Voice, blob)
		} else {
			gemini.Part(x, "0", part, d.Out)
		}
	}
	if spoken.Is(jsonv.String) && !spoken.Equal("") {
		x.Piece(d.Out, "spoken", msg.Assistant, spoken.Text())
	}
	gemini.Sources(x, p, d.Out)
	p.Get("generationComplete").Bool()
	p.Get("waitingForInput").Bool()
	if p.Get("interrupted").Bool() && d.open() {
		x.Stop = "interrupted"
	}
	d.count(usage)
	reason := ident.Of(p.Get("turnCompleteReason"))
	switch {
	case !p.Get("turnComplete").Bool():
	case d.Broken != nil:
		d.Broken = nil
	case x.Run != "" && !x.Over:
		if !d.open() {
			d.answer()
		}
		if failed(reason) {
			x.CloseAll(d.Out, "")
			x.Stop = cmp.Or(x.Stop, reason)
			x.Fail(d.Out, reason, msg.Text{})
		}
		d.end(cmp.Or(reason, "turnComplete"), false)
	}
}

// failed reports whether a turnCompleteReason is that of a turn which the model could not end, as MALFORMED_FUNCTION_CALL, or was not to,
// as RESPONSE_REJECTED.
func failed(reason string) bool {
	return reason != "" && reason != "TURN_COMPLETE_REASON_UNSPECIFIED" && reason != "NEED_MORE_INPUT"
}

// end ends a generation. One that was interrupted was so by the words after it.
func (d *session) end(stop string, waits bool) {
	x := &d.X
	x.CloseAll(d.Out, "")
	if len(d.Voice) > 0 {
		x.Say(d.Out, msg.Assistant, "").Attachments, d.Voice = d.Voice, nil
	}
	if x.Stop = cmp.Or(x.Stop, stop); !waits && x.Stop != "interrupted" {
		d.late()
	}
	x.Waits = waits
	x.End(d.Out)
}

// count decodes the tokens of a turn, which are those of its last generation.
func (d *session) count(usage jsonv.Value) {
	u := gemini.UsageOf(usage)
	u.Output = max(u.Output, usage.Get("responseTokenCount").Uint()) // the same by two names, where both are there
	if u == (gemini.Usage{}) {
		return
	}
	of := generation{d.X.Run, d.X.ID}
	switch {
	case d.Broken != nil:
		of = *d.Broken
	case d.open():
		d.X.Count(u.Counts())
		return
	case of.ID == "" || d.X.Counted: // of nothing that is known
		d.X.Unknown(d.Out, "usageMetadata", usage.Raw())
		return
	default:
		d.X.Counted = true
	}
	m := d.X.Message(d.Out, msg.Usage, "usage:"+of.ID)
	m.Run, m.Hidden, m.Model, m.Provider, m.ResponseID = of.Run, true, d.Model, d.X.Provider, of.ID
	m.Usage = u.Counts().Tokens(msg.Provider)
}

// results decodes the results of calls, after which the model goes on.
func (d *session) results(list jsonv.Value) {
	var items []exchange.Item
	for fr := range jsonv.Each(list) {
		it := exchange.Item{Who: exchange.Result, CallID: ident.Of(fr.Get("id")), From: fr}
		it.Text, it.Attachments, it.Failed = gemini.Result(fr)
		if items = append(items, it); d.open() && it.CallID != "" { // it did not wait
			m := d.X.Ran(d.Out, it.CallID, ident.Of(fr.Get("name")))
			m.Content, m.Attachments = it.Text, it.Attachments
			conversation.Failed(m, it.Failed)
		}
	}
	if !d.open() {
		d.name("")
		d.X.Request(d.Out, exchange.Ask{Session: d.X.Session, From: d.From, Prompt: d.X.Run, Model: d.Model, Items: items})
	}
}

// cancelled ends calls whose results are not wanted any more, and the run that waits for them.
func (d *session) cancelled(ids jsonv.Value) {
	for v := range ids.Elems() {
		if id := ident.Of(v); id != "" {
			m := d.X.Ran(d.Out, id, "")
			m.IsError, m.Tool.ErrorType = true, "interrupted"
		}
	}
	if d.X.Waits && d.X.Over {
		d.X.Waits = false
		m := d.X.Status(d.Out, "interrupted:"+d.X.ID, "interrupted")
		m.Signal = msg.RunEnd
	}
}
