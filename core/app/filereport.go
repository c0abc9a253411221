package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/frame/fixture"
	"github.com/earshot-dev/earshot/core/internal/source/file"
	"github.com/earshot-dev/earshot/core/internal/source/sqlite"
	"github.com/earshot-dev/earshot/core/msg"
)

// FileReport is the state of the files of one source of files or databases.
type FileReport struct {
	Source, Format string
	Files          []string      // that match and may be read
	Unread         []file.Unread // files that match and may not be read
	Match          FormatMatch   // of its beginnings; zero if they were not decoded
	// Better is a bundled format that decodes them, where the source's own does not.
	Better string
	what   string // file or database
}

// FormatMatch counts how much of some traffic a decoder understands.
type FormatMatch struct{ Messages, Unknown int }

// Mismatch reports whether next to nothing is understood: not a stray unknown event, and
// not a file of two lines.
func (f FormatMatch) Mismatch() bool { return f.Messages >= 3 && f.Unknown*10 >= f.Messages*9 }

// Warnings returns a sentence for each problem.
func (s *FileReport) Warnings() []string { return append(s.UnreadableWarnings(), s.OtherWarnings()...) }

// OtherWarnings is Warnings without the files that may not be read.
func (s *FileReport) OtherWarnings() []string {
	var out []string
	if len(s.Files) == 0 && len(s.Unread) == 0 {
		out = append(out, fmt.Sprintf("source %s: no %s matches its paths", s.Source, s.what))
	}
	if s.Match.Mismatch() {
		out = append(out, s.Match.Warning(s.Source, s.Format, s.Better))
	}
	return out
}

// UnreadableWarnings returns a sentence for each file that may not be read, up to a bound.
func (s *FileReport) UnreadableWarnings() []string {
	var out []string
	const most = 5
	for i, u := range s.Unread {
		if i == most {
			out = append(out, fmt.Sprintf("source %s: %d more may not be read", s.Source, len(s.Unread)-most))
			break
		}
		out = append(out, fmt.Sprintf("source %s: %s is not read: %s", s.Source, u.Path, u.Detail))
	}
	return out
}

// Warning is the sentence of a mismatch.
func (f FormatMatch) Warning(source, format, better string) string {
	text := fmt.Sprintf("source %s: %d of %d messages are unknown to %s: is the format right?", source, f.Unknown, f.Messages, format)
	if better != "" {
		text += fmt.Sprintf(" (%s decodes them)", better)
	}
	return text
}

// ReportFiles reports on the files of the sources of files and databases. With decode, the beginnings of some
// files are decoded, by their source's decoder and, if that understands nothing, by the
// bundled ones. open, if set, returns an error for a file that may not be read.
func ReportFiles(ctx context.Context, d Decoders, c *config.Config, decode bool, open func(path string) error) ([]FileReport, error) {
	var out []FileReport
	for i := range c.Sources {
		src := &c.Sources[i]
		s := FileReport{Source: src.Name, Format: src.Format, what: "file"}
		var err error
		switch paths := src.Section.(type) {
		case *file.Config:
			s.Files, s.Unread, err = paths.List(ctx, open)
		case *sqlite.Config:
			s.what = "database"
			s.Files, err = paths.List(func(path string, err error) {
				s.Unread = append(s.Unread, file.Unread{Path: path, Reason: sqlite.ReasonDatabase, Detail: err.Error()})
			})
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", src.Name, err)
		}
		if decode && len(s.Files) > 0 && s.what == "file" {
			if err := s.match(ctx, d, c, string(src.Options), s.Files); err != nil {
				return nil, err
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// match decodes the beginnings of the newest files.
func (s *FileReport) match(ctx context.Context, d Decoders, c *config.Config, options string, files []string) error {
	const most = 4
	var heads []string
	for _, path := range slices.Backward(files) {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 && !Packed(path) {
			heads = append(heads, path)
		}
		if len(heads) == most {
			break
		}
	}
	if len(heads) == 0 {
		return nil
	}
	var err error
	if s.Match, err = matchFormat(ctx, d, c, s.Format, options, heads); err != nil || !s.Match.Mismatch() {
		return err
	}
	var best FormatMatch
	for _, name := range d.Names {
		if name == s.Format {
			continue
		}
		// One that needs options, or does not start, is no candidate.
		if f, err := matchFormat(ctx, d, c, name, "", heads); err == nil && !f.Mismatch() && f.Messages-f.Unknown > best.Messages-best.Unknown {
			best, s.Better = f, name
		}
	}
	return ctx.Err()
}

// Packed reports whether a file is an archive, of which a position is none of the file.
func Packed(path string) bool { return file.ShapeOf(path, nil, nil) == file.Archive }

// openHead opens the beginning of a file: its first lines, or all of it if it is a document. Of a file
// that cannot be read, a large document and one that is being written it has nothing.
func openHead(path string, documents []string) (Frames, error) {
	const lines, document = 128 << 10, 4 << 20
	var b []byte
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		b, err = io.ReadAll(io.LimitReader(f, lines))
	}
	if err != nil { // that it may not be read is in the report
		b = nil
	}
	if file.ShapeOf(path, b, documents) != file.Document {
		return fixture.NewReader(bytes.NewReader(b[:bytes.LastIndexByte(b, '\n')+1]), fixture.JSONL)
	}
	rest, err := io.ReadAll(io.LimitReader(f, document))
	if b = append(b, rest...); err != nil || !json.Valid(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))) {
		b = nil
	}
	return fixture.NewReader(bytes.NewReader(b), fixture.JSON)
}

func matchFormat(ctx context.Context, d Decoders, c *config.Config, format, options string, heads []string) (FormatMatch, error) {
	var f FormatMatch
	inputs := make([]Input, 0, len(heads))
	for _, path := range heads {
		inputs = append(inputs, Input{Origin: path, Open: func(documents []string) (Frames, error) { return openHead(path, documents) }})
	}
	err := DecodeStreams(ctx, d, c, format, options, inputs, Decoded{
		Message: func(m *msg.Message) error {
			if m.Kind != msg.Unknown {
				f.Messages++
			} else if m.Attr("type") != msg.AttrUnknownFields {
				f.Messages, f.Unknown = f.Messages+1, f.Unknown+1
			}
			return nil
		},
		Problem: func(string, int64, msg.Problem, []byte) { f.Messages, f.Unknown = f.Messages+1, f.Unknown+1 },
	})
	if err != nil && errors.Is(err, context.Canceled) {
		return f, ctx.Err()
	}
	return f, err
}
