package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// proseStop are words that a reader of this field does not search for: comments name the
// component that acts and the field's verb instead (emit, return, report, receive, parent,
// in flight, evict, tombstone, orphan). docs/glossary.md has the words to use.
var proseStop = regexp.MustCompile(`(?i)\b(give[sn]?|gave|giving|tell(s|ing)?|told|say(s|ing)?|said|hear(s|d|ing)?|nobody|somebody|whoever|anew|stands|comes|what|whatever)\b`)

var whatIf = regexp.MustCompile(`(?i)\bwhat-?if`)

// most is the number of stop words allowed in 1,000 words of comments.
const most = 1.0

// TestWords counts the stop words in the comments of the Go code that is written by hand,
// in its log lines, in its errors and in the help of commands. -v lists every package over the limit; with
// WORDS=core/msg in the environment every place in that folder.
func TestWords(t *testing.T) {
	type count struct{ words, stops, strings int }
	counts := map[string]count{}
	places := os.Getenv("WORDS")
	fset := token.NewFileSet()
	err := filepath.WalkDir(root(t), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n == ".git" || n == "testdata" || n == "bin" || n == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".pb.go") || strings.HasPrefix(filepath.Base(path), "words_test") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(src[:min(len(src), 300)], []byte("DO NOT EDIT")) {
			return nil
		}
		f, err := parser.ParseFile(fset, path, src, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root(t), path)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		c := counts[dir]
		report := func(pos token.Pos, kind, word, text string) {
			if places != "" && (dir == places || strings.HasPrefix(dir, places+"/")) {
				t.Logf("%s:%d: %s: %s in %s", rel, fset.Position(pos).Line, kind, word, strings.TrimSpace(text))
			}
		}
		for _, g := range f.Comments {
			for _, l := range g.List {
				c.words += len(strings.Fields(l.Text)) - 1
				for _, line := range strings.Split(l.Text, "\n") {
					for _, w := range stopWords(line) {
						c.stops++
						report(l.Pos(), "comment", w, line)
					}
				}
			}
		}
		if !strings.HasSuffix(path, "_test.go") {
			ast.Inspect(f, func(n ast.Node) bool {
				for _, lit := range messages(n) {
					text, err := strconv.Unquote(lit.Value)
					if err != nil {
						continue
					}
					for _, w := range stopWords(text) {
						c.strings++
						report(lit.Pos(), "message", w, text)
					}
				}
				return true
			})
		}
		counts[dir] = c
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all count
	for _, dir := range slices.Sorted(maps.Keys(counts)) {
		c := counts[dir]
		all.words, all.stops, all.strings = all.words+c.words, all.stops+c.stops, all.strings+c.strings
		if rate := per1000(c.stops, c.words); rate > most || c.strings > 0 {
			t.Logf("%s: %.1f per 1,000 (%d in %d words of comments), %d in messages", dir, rate, c.stops, c.words, c.strings)
		}
	}
	summary := fmt.Sprintf("%.2f stop words in 1,000 words of comments (%d in %d), %d in log lines, errors and help", per1000(all.stops, all.words), all.stops, all.words, all.strings)
	t.Log(summary)
	if per1000(all.stops, all.words) > most || all.strings > 0 {
		t.Errorf("%s; at most %.1f and none. docs/glossary.md has words to use, and WORDS=core/msg go test -v -run TestWords ./core/internal/archtest every place in that folder", summary, most)
	}
}

// stopWords returns the stop words of a text; "what-if" is a term of the glossary.
func stopWords(text string) []string {
	return proseStop.FindAllString(whatIf.ReplaceAllString(text, ""), -1)
}

func per1000(n, words int) float64 { return 1000 * float64(n) / float64(max(words, 1)) }

// messages are the texts of a log call, of an error, or of a command's help.
func messages(n ast.Node) []*ast.BasicLit {
	if kv, ok := n.(*ast.KeyValueExpr); ok {
		key, isIdent := kv.Key.(*ast.Ident)
		text, isLit := kv.Value.(*ast.BasicLit)
		if isIdent && isLit && text.Kind == token.STRING && (key.Name == "Short" || key.Name == "Long") {
			return []*ast.BasicLit{text}
		}
		return nil
	}
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	switch sel.Sel.Name {
	case "Debug", "Info", "Warn", "Error", "Errorf", "New", "DebugContext", "InfoContext", "WarnContext", "ErrorContext":
	default:
		return nil
	}
	var lits []*ast.BasicLit
	for _, a := range call.Args {
		if lit, ok := a.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			lits = append(lits, lit)
		}
	}
	return lits[:min(len(lits), 1)]
}
