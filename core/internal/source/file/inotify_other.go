//go:build !linux

package file

// newInotify reports that there is none. The interfaces of other systems need
// an open descriptor for every watched file.
func newInotify() (watcher, error) { return noWatcher() }
