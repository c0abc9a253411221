package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/earshot-dev/earshot/core/config/spec"
)

// parseYAML returns the root value of the one document that the data holds, nil
// when it holds none, or the problem that makes it no YAML.
func parseYAML(data []byte) (*yaml.Node, *Problem) {
	if len(data) > maxFile {
		return nil, problemAt(data, 0, fmt.Sprintf("the file is larger than %s", spec.Size(maxFile)), "")
	}
	if i, message, hint := stray(data); message != "" {
		return nil, problemAt(data, i, message, hint)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		if err = decoder.Decode(&second); err == nil {
			return nil, &Problem{Line: second.Line, Col: second.Column, Message: "a second YAML document; a configuration is one"}
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, syntaxProblem(data, err)
	}
	root := document.Content[0]
	if isNull(root) {
		return nil, nil
	}
	return root, nil
}

// stray returns where data has a character that YAML does not allow, or takes for a
// line break although editors do not (a carriage return alone, U+2028): from
// there on its lines would not be the reader's.
func stray(data []byte) (offset int, message, hint string) {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return i, fmt.Sprintf("byte 0x%02X is not UTF-8", data[i]), "save the file as UTF-8"
		case r < ' ' && r != '\t' && r != '\n' && (r != '\r' || !bytes.HasPrefix(data[i:], []byte("\r\n"))),
			0x7f <= r && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfffe, r == 0xffff,
			r == 0xfeff && i > 0:
			return i, fmt.Sprintf("the character U+%04X has no place in a configuration", r), "write it as an escape between double quotes"
		}
		i += n
	}
	return 0, "", ""
}

// syntaxProblem finds where the syntax error is. The library names a line, and
// that is often the one where the enclosing block began; so the place is found
// here: the beginning of the run of prefixes, up to where the library stopped,
// that all fail with the same message. Where a quote or bracket is never closed
// that is the opening one.
func syntaxProblem(data []byte, err error) *Problem {
	message := reason(err)
	fails := func(n int) bool {
		for n < len(data) && !utf8.RuneStart(data[n]) {
			n++
		}
		return reason(decodeAll(bytes.NewReader(data[:n]))) == message
	}
	read := &oneByte{data: data}
	_ = decodeAll(read)
	ends := lineEnds(data[:read.n])
	last := edge(len(ends)-1, func(i int) bool { return fails(ends[i]) })
	line := 0
	if last > 0 {
		line = ends[last-1]
	}
	end := line + 1 + edge(ends[last]-line-1, func(i int) bool { return fails(line + 1 + i) })
	start := line + wordStart(string(data[line:end]))
	rest, _, _ := strings.Cut(string(data[start:]), "\n")
	return problemAt(data, start, "yaml: "+message, syntaxHint(message, rest))
}

// lineEnds returns the offsets behind the lines of data, of which there is one at
// least.
func lineEnds(data []byte) []int {
	var ends []int
	for i, c := range data {
		if c == '\n' && i+1 < len(data) {
			ends = append(ends, i+1)
		}
	}
	return append(ends, len(data))
}

// edge returns where the run of failures begins that ends with last. It looks at
// one after the other first, because an earlier run may be near, and then in
// growing steps.
func edge(last int, fails func(int) bool) int {
	const oneByOne = 16
	step, fine := 1, -1
	for n := 0; last > 0; n++ {
		if n > oneByOne {
			step *= 2
		}
		next := max(last-step, 0)
		if !fails(next) {
			fine = next
			break
		}
		last = next
	}
	for last-fine > 1 && fine >= 0 {
		if middle := (fine + last) / 2; fails(middle) {
			last = middle
		} else {
			fine = middle
		}
	}
	return last
}

// wordStart is where the last word of a line begins, or its last character when
// that is no part of a word.
func wordStart(line string) int {
	const noWord = " \t[]{},\"'"
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return 0
	}
	if strings.ContainsRune(noWord, rune(line[len(line)-1])) {
		return len(line) - 1
	}
	return strings.LastIndexAny(line, noWord) + 1
}

// oneByte hands its data over byte by byte and so knows how much was asked for.
type oneByte struct {
	data []byte
	n    int
}

func (o *oneByte) Read(p []byte) (int, error) {
	if o.n == len(o.data) {
		return 0, io.EOF
	}
	p[0] = o.data[o.n]
	o.n++
	return 1, nil
}

// decodeAll reads all documents and returns the error that ended it, io.EOF at best.
func decodeAll(r io.Reader) error {
	decoder := yaml.NewDecoder(r)
	for {
		var n yaml.Node
		if err := decoder.Decode(&n); err != nil {
			return err
		}
	}
}

// reason is the library's message without the line that it names.
func reason(err error) string {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok {
			return after
		}
	}
	return message
}

// syntaxHint names the usual cause by the message and the rest of
// the line from where the error is.
func syntaxHint(message, rest string) string {
	switch {
	case strings.HasPrefix(rest, "${"):
		return `between { } or [ ] a variable is quoted: "${VAR}"`
	case strings.HasPrefix(rest, "\t"):
		return "indent with spaces"
	case strings.Contains(message, "mapping values are not allowed"):
		return `quote a text that has ": " in it, and check the indentation`
	case strings.Contains(message, "cannot start any token"):
		return "quote the text"
	case strings.Contains(message, "did not find expected"), strings.Contains(message, "could not find expected"):
		return "check the indentation and the brackets"
	case strings.Contains(message, "unexpected end of stream"):
		return "the quote is never closed"
	}
	return ""
}

// problemAt is a problem at a byte of the file.
func problemAt(data []byte, offset int, message, hint string) *Problem {
	p := Problem{Line: 1, Col: 1, Message: message, Hint: hint}
	before := data[:offset]
	p.Line += bytes.Count(before, []byte("\n"))
	p.Col += utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return &p
}
