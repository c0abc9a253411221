package gemini

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Arguments that come in pieces are parsed and written again for each: maxAssembled bounds
// their bytes, maxDepth the length of a path.
const (
	maxAssembled = 256 << 10
	maxDepth     = 64
)

// set adds a value of a call's arguments, or continues a string; false when it cannot.
//
//	{"jsonPath":"$.cart[0].name","stringValue":"Ap","willContinue":true}
func set(p *exchange.Part, piece jsonv.Value) bool {
	path, ok := steps(piece.Get("jsonPath").Str())
	if !ok || len(p.Text)+len(piece.Peek()) > maxAssembled {
		return false
	}
	var root any
	if len(p.Text) > 0 {
		d := json.NewDecoder(bytes.NewReader(p.Text))
		d.UseNumber()
		if d.Decode(&root) != nil {
			return false
		}
	}
	var value any
	switch {
	case piece.Get("stringValue").Is(jsonv.String):
		value = piece.Get("stringValue").Str()
	case piece.Get("numberValue").Is(jsonv.Number):
		value = json.Number(piece.Get("numberValue").Raw())
	case piece.Get("boolValue").Exists():
		value = piece.Get("boolValue").Bool()
	case piece.Get("nullValue").Is(jsonv.Null), piece.Get("nullValue").Equal("NULL_VALUE"):
	default:
		return false
	}
	if root, ok = put(root, path, value); !ok {
		return false
	}
	text, err := json.Marshal(root)
	if err != nil {
		return false
	}
	p.Text = text
	return true
}

// steps splits a JSONPath of names and indexes: $.a.b[0]['c'].
func steps(path string) (list []any, ok bool) {
	path, ok = strings.CutPrefix(path, "$")
	for ok && path != "" {
		if len(list) >= maxDepth {
			return nil, false
		}
		var step string
		switch {
		case path[0] == '.':
			end := strings.IndexAny(path[1:], ".[") + 1
			if end == 0 {
				end = len(path)
			}
			step, path = path[1:end], path[end:]
			list = append(list, step)
			ok = step != ""
		case path[0] == '[':
			if step, path, ok = strings.Cut(path[1:], "]"); !ok {
				return nil, false
			}
			if name := strings.Trim(step, `'"`); name != step {
				list = append(list, name)
			} else if n, err := strconv.Atoi(step); err == nil && n >= 0 {
				list = append(list, n)
			} else {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return list, ok && len(list) > 0
}

// put returns the tree with the value at the path. A string goes on where one is.
func put(at any, path []any, value any) (any, bool) {
	if len(path) == 0 {
		before, isText := at.(string)
		if more, ok := value.(string); ok && isText {
			return before + more, true
		}
		return value, true
	}
	switch step := path[0].(type) {
	case string:
		m, ok := at.(map[string]any)
		if at == nil {
			m, ok = map[string]any{}, true
		}
		if !ok {
			return nil, false
		}
		m[step], ok = put(m[step], path[1:], value)
		return m, ok
	case int:
		l, ok := at.([]any)
		if !ok && at != nil || step > len(l) {
			return nil, false
		}
		if step == len(l) {
			l = append(l, nil)
		}
		l[step], ok = put(l[step], path[1:], value)
		return l, ok
	}
	return nil, false
}
