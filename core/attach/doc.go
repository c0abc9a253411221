// Package attach changes one value in a settings file of another program, and undoes it:
// the base URL by which an agent reaches its provider, so that a tap is in between.
//
// A change keeps every other byte: comments, order, line ends. The file as it was before is kept in a
// record, with the hashes of both states. To undo a change restores the file byte for byte; in a file that
// was changed since, only the value of the change goes back to the one before. A file that is a symbolic
// link, that is read-only, or whose content is not valid is an error and stays as it is.
package attach
