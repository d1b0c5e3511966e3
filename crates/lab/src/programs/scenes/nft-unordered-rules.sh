
folder_too() { :; }
