// Package browser tests `earshot ui` in a headless Chromium: traffic of every kind goes through
// the built binaries into the embedded store, and every page is visited in the dark and in the
// light, on a wide and on a narrow window, by keyboard, with 10,000 spans in one turn.
//
//	make browser                 # needs chromium; fails without one
//	make browser SHOTS=/tmp/ui   # leaves a PNG of every page there
//
// It is a module of its own, so that neither `go test ./...` nor a build of Earshot needs a
// browser or the driver of one.
package browser
