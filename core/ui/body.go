package ui

import (
	"bytes"
	"encoding/json"
	"html/template"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/earshot-dev/earshot/core/inspect"
)

// body is a text of a step as it is shown: one of Markdown, Fields and Text.
type body struct {
	Title    string
	Kind     string // of the message
	Failed   bool
	Hidden   bool
	Markdown template.HTML
	Fields   []field // of arguments
	Text     string
	Lines    []line // a text that is a diff
	Files    []inspect.Attachment
	SeenBy   string // the formats that have the message, where they are several
}

// field is an argument of a call.
type field struct {
	Name, Text string
	Lines      []line // an edit
}

// line is a line of a diff; Sign is one of + - @ and blank.
type line struct{ Sign, Text string }

// Class names the sign.
func (l line) Class() string {
	switch l.Sign {
	case "+":
		return "add"
	case "-":
		return "del"
	case "@":
		return "hunk"
	}
	return "same"
}

// bodies are the texts of a message.
func bodies(m inspect.StepMessage) (out []body) {
	b := body{Kind: m.Kind, Failed: m.Failed, Hidden: m.Hidden, Files: m.Attachments, SeenBy: strings.Join(m.SeenBy, ", ")}
	switch m.Kind {
	case "tool_call", "delegation":
		b.Title = "arguments"
		if m.Task != "" {
			out = append(out, body{Kind: m.Kind, SeenBy: b.SeenBy, Title: "task", Markdown: markdown(m.Task)})
		}
		if b.Fields = arguments(m.Arguments); b.Fields == nil {
			b.Text = clean(m.Arguments)
		}
		if m.Arguments != "" {
			out = append(out, b)
		}
		return out
	case "tool_result", "delegation_result":
		b.Title = "result"
		if b.Lines = unified(m.Content); b.Lines == nil {
			b.Text = clean(m.Content)
		}
	case "user", "assistant", "reasoning", "plan":
		b.Title = map[string]string{"user": "prompt", "assistant": "answer", "reasoning": "reasoning", "plan": "plan"}[m.Kind]
		b.Markdown = markdown(m.Content)
	default:
		b.Title, b.Text = strings.ReplaceAll(m.Kind, "_", " "), clean(m.Content)
	}
	if m.Content == "" && len(b.Files) == 0 {
		return nil
	}
	return []body{b}
}

// clean removes terminal sequences from a text, and shows the characters that would reorder or hide text.
func clean(s string) string {
	s = strings.ReplaceAll(inspect.Plain(s), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20 || 0x7f <= r && r < 0xa0 || r == utf8.RuneError, r == 0x061c || r == 0x200e || r == 0x200f,
			0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069, r == 0x2028 || r == 0x2029, 0xe0000 <= r && r <= 0xe007f:
			return '·'
		}
		return r
	}, s)
}

// renderer renders CommonMark with tables. It knows no raw HTML, which is text like any other, and leaves dangerous
// addresses out, which is goldmark's default; an image is a link, for nothing is fetched for a text.
var renderer = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(without(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())...),
		parser.WithInlineParsers(without(parser.DefaultInlineParsers(), parser.NewRawHTMLParser())...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
		parser.WithASTTransformers(util.Prioritized(imagesToLinks{}, 100)))),
	goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList))

func without(list []util.PrioritizedValue, value any) []util.PrioritizedValue {
	return slices.DeleteFunc(list, func(v util.PrioritizedValue) bool { return v.Value == value })
}

type imagesToLinks struct{}

// Transform implements parser.ASTTransformer.
func (imagesToLinks) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	var images []*ast.Image
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if i, ok := n.(*ast.Image); ok && entering {
			images = append(images, i)
		}
		return ast.WalkContinue, nil
	})
	for _, i := range images {
		l := ast.NewLink()
		l.Destination, l.Title = i.Destination, i.Title
		for c := i.FirstChild(); c != nil; {
			next := c.NextSibling()
			l.AppendChild(l, c)
			c = next
		}
		if l.FirstChild() == nil {
			l.AppendChild(l, ast.NewString([]byte("image")))
		}
		i.Parent().ReplaceChild(i.Parent(), i, l)
	}
}

// markdownMost is the length from which a text is shown as it is: it is no prose.
const markdownMost = 200_000

// markdown renders a text that an agent or a person wrote.
func markdown(s string) template.HTML {
	s = clean(s)
	var b bytes.Buffer
	if len(s) > markdownMost || renderer.Convert([]byte(s), &b) != nil {
		return template.HTML("<pre>" + template.HTMLEscapeString(s) + "</pre>") //nolint:gosec // escaped
	}
	return template.HTML(b.String()) //nolint:gosec // goldmark escapes it
}

// arguments are the fields of a JSON object in their order, edits as diffs; nil for another text.
func arguments(s string) (out []field) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	values := make(map[string]string)
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil
		}
		f := field{Name: clean(name.(string))}
		var plain string
		if json.Unmarshal(raw, &plain) == nil && raw[0] == '"' {
			f.Text = clean(plain)
			if f.Lines = unified(plain); f.Lines != nil {
				f.Text = ""
			}
			values[f.Name] = plain
		} else {
			var b bytes.Buffer
			if json.Indent(&b, raw, "", "  ") == nil {
				f.Text = clean(b.String())
			}
			for _, e := range editsOf(raw) {
				f.Lines = append(append(f.Lines, line{"@", ""}), edit(e[0], e[1])...)
				f.Text = ""
			}
		}
		out = append(out, f)
	}
	for _, pair := range editNames {
		before, ok1 := values[pair[0]]
		after, ok2 := values[pair[1]]
		if ok1 && ok2 {
			out = slices.DeleteFunc(out, func(f field) bool { return f.Name == pair[0] || f.Name == pair[1] })
			out = append(out, field{Name: "edit", Lines: edit(before, after)})
		}
	}
	return out
}

// editNames are the arguments by which tools replace a text.
var editNames = [][2]string{{"old_string", "new_string"}, {"old_str", "new_str"}, {"oldString", "newString"}, {"oldText", "newText"}, {"search", "replace"}}

// editsOf are the replacements of a list of edits.
func editsOf(raw json.RawMessage) (out [][2]string) {
	var list []map[string]any
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	for _, e := range list {
		for _, pair := range editNames {
			before, ok1 := e[pair[0]].(string)
			after, ok2 := e[pair[1]].(string)
			if ok1 && ok2 {
				out = append(out, [2]string{before, after})
			}
		}
	}
	return out
}

// edit shows the lines that a replacement changes, with a few of the lines around them.
func edit(before, after string) (out []line) {
	const context = 3
	a, b := strings.Split(clean(before), "\n"), strings.Split(clean(after), "\n")
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	add := func(sign string, list []string) {
		for _, l := range list {
			out = append(out, line{sign, l})
		}
	}
	add(" ", a[max(0, head-context):head])
	add("-", a[head:len(a)-tail])
	add("+", b[head:len(b)-tail])
	add(" ", a[len(a)-tail:min(len(a), len(a)-tail+context)])
	return out
}

// unified are the lines of a text that is a unified diff, or a patch of apply_patch; nil for another text.
func unified(s string) (out []line) {
	start := strings.TrimLeft(s, "\n ")
	if !strings.HasPrefix(start, "diff --git ") && !strings.HasPrefix(start, "*** Begin Patch") && !(strings.HasPrefix(start, "--- ") && strings.Contains(start, "\n+++ ") && strings.Contains(start, "\n@@")) {
		return nil
	}
	for l := range strings.SplitSeq(clean(s), "\n") {
		switch {
		case strings.HasPrefix(l, "@@"), strings.HasPrefix(l, "*** "), strings.HasPrefix(l, "diff "), strings.HasPrefix(l, "--- "), strings.HasPrefix(l, "+++ "), strings.HasPrefix(l, "index "):
			out = append(out, line{"@", l})
		case strings.HasPrefix(l, "+"), strings.HasPrefix(l, "-"):
			out = append(out, line{l[:1], l[1:]})
		default:
			out = append(out, line{" ", strings.TrimPrefix(l, " ")})
		}
	}
	return out
}
