// Package human prints what a run finds for people.
//
// Objects that change alike are shown as one, and a summary ends every format. A
// printer keeps no object after it was printed, only the text that it is going to
// show, and that in bounded memory.
package human
