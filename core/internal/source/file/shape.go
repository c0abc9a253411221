package file

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Shape is how the content of a file is cut into frames.
type Shape uint8

// The shapes.
const (
	Lines    Shape = iota // each line is one
	Document              // all of it is one, a JSON document
	Archive               // each line of its unpacked content is one
)

// ShapeOf returns the shape of a file by its name and how it begins, as far as that is known. documents are
// the names of files that are one document in its format (decoder.Info). In such a format a file of
// another name is one too if its first line is { or [ alone: some programs write one indented
// document under the name of lines.
func ShapeOf(name string, head []byte, documents []string) Shape {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	if slices.ContainsFunc(documents, func(p string) bool { return doublestar.MatchUnvalidated(p, name) }) {
		return Document
	}
	if unpackedName(name) != name {
		return Archive
	}
	line, _, whole := bytes.Cut(bytes.TrimPrefix(head, mark), []byte("\n"))
	if line = bytes.TrimSpace(line); whole && len(documents) > 0 && (string(line) == "{" || string(line) == "[") {
		return Document
	}
	return Lines
}

// unpackedName is the name of a file before it was packed.
func unpackedName(name string) string {
	for _, end := range [...]string{".gz", ".zst"} {
		if before, ok := strings.CutSuffix(name, end); ok {
			return before
		}
	}
	return name
}
