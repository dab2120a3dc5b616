const page = window.phrasemask;
page.dialog(element, "keys");
