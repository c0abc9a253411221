package conversation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Parse parses a frame into doc. ok is false when it is no JSON, which is then the frame's
// problem.
func Parse(doc *jsonv.Doc, data []byte, out *decoder.Output) (root jsonv.Value, ok bool) {
	if err := doc.Parse(data); err != nil {
		if isUTF16(data) {
			out.Problem(msg.ReasonInvalidUTF8, "the text is UTF-16, as Windows PowerShell 5 writes it: have it written in UTF-8")
		} else {
			bad(err, out)
		}
		return jsonv.Value{}, false
	}
	return doc.Root(), true
}

// isUTF16 reports whether a text, or a line of one, has a zero for every other byte. Cut at its line feeds, which are bytes of
// units, a line begins with either half of one.
func isUTF16(data []byte) bool {
	const looked = 16
	data = bytes.TrimPrefix(bytes.TrimPrefix(data, []byte("\xff\xfe")), []byte("\xfe\xff"))
	data = data[:min(len(data), looked)]
	if len(data) < looked {
		return false
	}
	zeros := [2]int{}
	for i, b := range data {
		if b == 0 {
			zeros[i%2]++
		}
	}
	return max(zeros[0], zeros[1]) == looked/2 && min(zeros[0], zeros[1]) == 0
}

// bad reports that a frame is no JSON.
func bad(err error, out *decoder.Output) {
	reason := msg.ReasonInvalidJSON
	var syntax *jsonv.SyntaxError
	if errors.As(err, &syntax) && syntax.UTF8 {
		reason = msg.ReasonInvalidUTF8
	}
	out.Problem(reason, err.Error())
}

// ParseObject is Parse for a frame that is an object.
func ParseObject(doc *jsonv.Doc, data []byte, out *decoder.Output) (root jsonv.Value, ok bool) {
	if root, ok = Parse(doc, data, out); ok && !root.Is(jsonv.Object) {
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
		return jsonv.Value{}, false
	}
	return root, ok
}

// NoOptions refuses the options of a source whose format has none.
func NoOptions(format string, raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	var options map[string]json.RawMessage
	if err := json.Unmarshal(raw, &options); err != nil {
		return fmt.Errorf("%s: options: %w", format, err)
	}
	for name := range options {
		return fmt.Errorf("%s: option %q: there are no options", format, name)
	}
	return nil
}
