# What `cmake --install` lays down. The manual and the completions are made by a tool that knows the same tables
# as the programs.
include(GNUInstallDirs)

install(TARGETS nestguard nestguard-ctl)

add_executable(nestguard-manual proxy/manual/main.c)
target_link_libraries(nestguard-manual PRIVATE manual)
set(made)
foreach(page nestguard.1 nestguard.yaml.5 nestguard-ctl.1 bash zsh)
  set(file ${CMAKE_BINARY_DIR}/manual/${page})
  add_custom_command(OUTPUT ${file} DEPENDS nestguard-manual VERBATIM
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/manual
                     COMMAND nestguard-manual ${page} > ${file})
  list(APPEND made ${file})
endforeach()
add_custom_target(manual_pages ALL DEPENDS ${made})

set(manual ${CMAKE_BINARY_DIR}/manual)
install(FILES ${manual}/nestguard.1 ${manual}/nestguard-ctl.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${manual}/nestguard.yaml.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
foreach(program nestguard nestguard-ctl)
  install(FILES ${manual}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${program})
endforeach()
install(FILES ${manual}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _nestguard)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES deploy/nestguard.yaml DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES deploy/published.lua DESTINATION ${CMAKE_INSTALL_DATADIR}/nestguard)
install(FILES deploy/prometheus/dashboard.json deploy/prometheus/alerts.yaml DESTINATION ${CMAKE_INSTALL_DATADIR}/nestguard)

# A package leaves these to its own tools, which know where the distribution wants them.
option(INSTALL_SERVICE "Install systemd's unit and the user that it runs as" ON)
configure_file(deploy/nestguard.service.in ${CMAKE_BINARY_DIR}/nestguard.service @ONLY)
if(INSTALL_SERVICE)
  install(FILES ${CMAKE_BINARY_DIR}/nestguard.service DESTINATION lib/systemd/system)
  install(FILES deploy/nestguard.sysusers DESTINATION lib/sysusers.d RENAME nestguard.conf)
endif()
