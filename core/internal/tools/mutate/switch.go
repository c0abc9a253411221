package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Each change is a switch in the code (mutant schemata; Untch, Offutt and Harrold, 1993), so that one build has them all,
// and the environment of a process selects one.
const (
	helper   = "mutant__"
	number   = "%[1]d" // of the change
	selected = helper + "(" + number + ")"
)

// edit is a text that is put into a file, and how many bytes are dropped after it.
type edit struct {
	at     int
	text   string
	drop   int
	closes bool // what was opened before
}

// switched returns the files with the changes as switches. The numbers are those of the list.
func switched(list []*change) map[string][]byte {
	type numbered struct {
		edit
		n int
	}
	files, edits := make(map[string]*source), make(map[string][]numbered)
	for n, c := range list {
		files[c.file.path] = c.file
		for _, e := range c.edits {
			edits[c.file.path] = append(edits[c.file.path], numbered{e, n})
		}
	}
	out := make(map[string][]byte, len(files))
	for path, f := range files {
		slices.SortStableFunc(edits[path], func(a, b numbered) int {
			if c := cmp.Compare(a.at, b.at); c != 0 {
				return c
			}
			if a.closes != b.closes {
				if a.closes {
					return -1
				}
				return 1
			}
			if a.closes {
				return cmp.Compare(b.n, a.n)
			}
			return cmp.Compare(a.n, b.n)
		})
		var b strings.Builder
		at := 0
		for _, e := range edits[path] {
			b.WriteString(f.text[at:e.at])
			if strings.Contains(e.text, number) {
				fmt.Fprintf(&b, e.text, e.n)
			} else {
				b.WriteString(e.text)
			}
			at = e.at + e.drop
		}
		b.WriteString(f.text[at:])
		out[path] = []byte(b.String())
	}
	return out
}

// helperFile is the file that a package gets beside the switches.
func helperFile(dir, pkg string) (path string, text []byte) {
	return filepath.Join(dir, helper+".go"), []byte("package " + pkg + helperText)
}

const helperText = `

import (
	"cmp"
	"os"
	"strconv"
	"syscall"
)

// mutant__Reached has a byte for each change, which is 1 once the change was reached. It is a file, so that it is
// there after a crash, and has what other processes of a test reached.
var mutant__Selected, mutant__Reached = mutant__Begin()

func mutant__Begin() (int, []byte) {
	if path := os.Getenv("MUTANT_REACHED"); path != "" {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return -1, nil // a process in a cell
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			panic(err)
		}
		reached, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		if err != nil {
			panic(err)
		}
		return -1, reached
	}
	n, err := strconv.Atoi(os.Getenv("MUTANT"))
	if err != nil {
		return -1, nil
	}
	return n, nil
}

func mutant__(n int) bool {
	return mutant__Selected == n || mutant__Reached != nil && mutant__Reach(n)
}

//go:noinline
func mutant__Reach(n int) bool {
	if mutant__Reached[n] == 0 {
		mutant__Reached[n] = 1
	}
	return false
}

func mutant__Lss[T cmp.Ordered](n int, a, b T) bool { return a < b || a == b && mutant__(n) }
func mutant__Leq[T cmp.Ordered](n int, a, b T) bool { return a < b || a == b && !mutant__(n) }
func mutant__Gtr[T cmp.Ordered](n int, a, b T) bool { return a > b || a == b && mutant__(n) }
func mutant__Geq[T cmp.Ordered](n int, a, b T) bool { return a > b || a == b && !mutant__(n) }

type mutant__Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func mutant__Add[T mutant__Number](n int, a, b T) T {
	if mutant__(n) {
		return a - b
	}
	return a + b
}

func mutant__Sub[T mutant__Number](n int, a, b T) T {
	if mutant__(n) {
		return a + b
	}
	return a - b
}

func mutant__Mul[T mutant__Number](n int, a, b T) T {
	if mutant__(n) {
		return a / b
	}
	return a * b
}

func mutant__Quo[T mutant__Number](n int, a, b T) T {
	if mutant__(n) {
		return a * b
	}
	return a / b
}
`
